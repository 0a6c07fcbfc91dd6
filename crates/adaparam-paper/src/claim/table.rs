//! The table of the paper's sentences.

use serde::{Deserialize, Serialize};

use super::{JudgedBy, Sentence};
use crate::experiment::Experiment;

/// Declares an entry for each sentence: from one list the names, and the table in their order.
macro_rules! sentences {
    ($($id:ident {
        name: $name:literal,
        place: $place:literal,
        text: $text:literal,
        judged_by: $judged_by:expr,
    })*) => {
        /// The name of a sentence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ClaimId {
            $(
                #[doc = $text]
                #[serde(rename = $name)]
                $id,
            )*
        }

        /// Every sentence of the paper that can be measured. Experiments are in the paper's order, and judge theirs in
        /// the order of the table; those that nobody judges come last.
        pub const SENTENCES: &[Sentence] = &[
            $(
                Sentence {
                    id: ClaimId::$id,
                    name: $name,
                    place: $place,
                    text: $text,
                    judged_by: $judged_by,
                },
            )*
        ];
    };
}

const TAIL: JudgedBy = JudgedBy::Tail;
const IMAGES: JudgedBy = JudgedBy::Images;
const PTB: JudgedBy = JudgedBy::LanguageModels(Experiment::Ptb);
const WIKITEXT_2: JudgedBy = JudgedBy::LanguageModels(Experiment::WikiText2);
const ABLATION: JudgedBy = JudgedBy::LanguageModels(Experiment::Ablation);
const ROBUSTNESS: JudgedBy = JudgedBy::LanguageModels(Experiment::Robustness);
const EFFICIENCY: JudgedBy = JudgedBy::LanguageModels(Experiment::Efficiency);
const CHOICES: JudgedBy = JudgedBy::LanguageModels(Experiment::Choices);

sentences! {
    TailBaselineFails {
        name: "tail-baseline-fails",
        place: "section 4.1",
        text: "“The baseline model fails to represent the tail of the distribution” ({place})",
        judged_by: TAIL,
    }

    TailAdaptiveDoesAGoodJob {
        name: "tail-adaptive-does-a-good-job",
        place: "section 4.1",
        text: "“The adaptive model does a remarkably good job given how small the model is” ({place})",
        judged_by: TAIL,
    }

    MnistTable1 {
        name: "mnist-table-1",
        place: "Table 1",
        text: "{model} recognises {accuracy} % of the test images ({place})",
        judged_by: IMAGES,
    }

    MnistGainsAPoint {
        name: "mnist-gains-a-point",
        place: "section 4.2",
        text: "The SVA policy has “approximately 1 percentage point gain in accuracy” over a logistic regression of \
               the same size ({place})",
        judged_by: IMAGES,
    }

    MnistMatchesDeep {
        name: "mnist-matches-deep",
        place: "section 4.2",
        text: "One SVA layer with “a sufficiently expressive adaptation model” “matches and even outperforms the \
               deep feed-forward baseline” ({place})",
        judged_by: IMAGES,
    }

    MnistDeepIsBetter {
        name: "mnist-deep-is-better",
        place: "Table 1",
        text: "The 3-layer SVA network outperforms the 3-layer feed-forward network ({place})",
        judged_by: IMAGES,
    }

    PtbAnyAdaptation {
        name: "ptb-any-adaptation",
        place: "section 4.3, Table 2",
        text: "“Any form of adaptation is beneficial” ({place})",
        judged_by: PTB,
    }

    PtbFastestAndBest {
        name: "ptb-fastest-and-best",
        place: "section 4.3",
        text: "“A recurrent adaptation model enjoys both fastest convergence rate and best final performance” \
               ({place})",
        judged_by: PTB,
    }

    PtbRecurrentGeneralizesBetter {
        name: "ptb-recurrent-generalizes-better",
        place: "section 3",
        text: "“The recurrent model […] generalizes marginally better” than the static one ({place})",
        judged_by: PTB,
    }

    PtbFewerParameters {
        name: "ptb-fewer-parameters",
        place: "section 1",
        text: "Adaptation can “outperform the baseline using 30–50 % fewer parameters” ({place}): the adaptive LSTM \
               of 14M against the LSTM of 20M",
        judged_by: PTB,
    }

    PtbImprovesOnPublished {
        name: "ptb-improves-on-published",
        place: "section 4.3",
        text: "“The aLSTM improves upon previously published results using roughly 30 % fewer parameters, […] and \
               fewer layers while converging in fewer iterations” ({place}), with 17M parameters: against {published}",
        judged_by: PTB,
    }

    PtbImprovesOnTgScLstm {
        name: "ptb-improves-on-tg-sc-lstm",
        place: "section 4.3",
        text: "The TG-SC LSTM is “a challenging baseline that the aLSTM improves upon by a considerable margin” \
               ({place}): at least 1 % below its test perplexity of 58.3",
        judged_by: PTB,
    }

    PtbAheadAfter144Epochs {
        name: "ptb-ahead-after-144-epochs",
        place: "section 4.3",
        text: "“The aLSTM outperforms the AWD-LSTM after 144 epochs” ({place}): validation perplexity below 60.0",
        judged_by: PTB,
    }

    PtbConvergesIn180Epochs {
        name: "ptb-converges-in-180-epochs",
        place: "section 4.3",
        text: "The aLSTM “converges to optimal performance in 180 epochs” ({place})",
        judged_by: PTB,
    }

    PtbStateOfTheArt {
        name: "ptb-state-of-the-art",
        place: "abstract, sections 1 and 5",
        text: "It advances the state of the art on the Penn Treebank “using ~20–30 % fewer parameters and converging \
               in less than half as many iterations” ({place}): against {published}",
        judged_by: PTB,
    }

    PtbBoltOnsApply {
        name: "ptb-bolt-ons-apply",
        place: "section 4.3",
        text: "Bolt-on methods “are equally applicable to the aLSTM” ({place}): cache, dynamic evaluation and mixture of \
               softmaxes each take at least half as large a share off its test perplexity as off the LSTM's",
        judged_by: PTB,
    }

    Wikitext2StatisticalEfficiency {
        name: "wikitext2-statistical-efficiency",
        place: "abstract",
        text: "Adaptation increases “statistical efficiency significantly” ({place}): on WikiText-2, against an LSTM \
               of the same size, which the paper's table lacks; met from 1 %",
        judged_by: WIKITEXT_2,
    }

    Wikitext2AheadIn150Epochs {
        name: "wikitext2-ahead-in-150-epochs",
        place: "section 4.4",
        text: "“Without tuning for WT2, both outperform previously published results in 150 epochs” ({place}): \
               validation perplexity below 68.6",
        judged_by: WIKITEXT_2,
    }

    Wikitext2ConvergesIn190Epochs {
        name: "wikitext2-converges-in-190-epochs",
        place: "section 4.4",
        text: "Both “converge to new state of the art performance in 190 epochs” ({place}): test perplexity below 65.8",
        judged_by: WIKITEXT_2,
    }

    Wikitext2StateOfTheArt {
        name: "wikitext2-state-of-the-art",
        place: "abstract, sections 1 and 5",
        text: "It advances the state of the art on WikiText-2 “using ~20–30 % fewer parameters and converging in \
               less than half as many iterations” ({place}), with 27M parameters: against {published}",
        judged_by: WIKITEXT_2,
    }

    AblationAnyAdaptation {
        name: "ablation-any-adaptation",
        place: "section 4.5",
        text: "“Any form of adaptation yields a significant performance gain” ({place}; met from 1 %)",
        judged_by: ABLATION,
    }

    AblationRecurrentPolicy {
        name: "ablation-recurrent-policy",
        place: "section 4.5",
        text: "“Going from a feed-forward adaptation model to a recurrent adaptation model yields a significant \
               improvement irrespective of policy” ({place}; met from 1 %)",
        judged_by: ABLATION,
    }

    AblationHybridBoost {
        name: "ablation-hybrid-boost",
        place: "section 4.5",
        text: "“Our hybrid RHN-LSTM provides a further boost” ({place})",
        judged_by: ABLATION,
    }

    AblationIoAdaptation {
        name: "ablation-io-adaptation",
        place: "section 4.5",
        text: "“Moving from a partial adaptation policy to IO-adaptation leads to significant performance \
               improvement under any adaptation model” ({place}; met from 1 %)",
        judged_by: ABLATION,
    }

    RobustnessAlstmIsTight {
        name: "robustness-alstm-is-tight",
        place: "section 4.6",
        text: "“The distribution of the aLSTM is tight” ({place}): from its 10th to its 90th percentile it is \
               narrower than the LSTM's",
        judged_by: ROBUSTNESS,
    }

    RobustnessAlstmConverges {
        name: "robustness-alstm-converges",
        place: "section 4.6",
        text: "“No sampled model fails to converge” (aLSTM, {place})",
        judged_by: ROBUSTNESS,
    }

    RobustnessPtbLstmFails {
        name: "robustness-ptb-lstm-fails",
        place: "section 4.6",
        text: "“Approximately 25 % of the population of LSTM configurations fail to converge” ({place}; met within \
               10 points)",
        judged_by: ROBUSTNESS,
    }

    RobustnessWikitext2LstmFails {
        name: "robustness-wikitext2-lstm-fails",
        place: "section 4.6",
        text: "On WikiText-2 “half of the LSTM population failing to converge” ({place}; met within 10 points)",
        judged_by: ROBUSTNESS,
    }

    RobustnessPtbLstmBelowWorst {
        name: "robustness-ptb-lstm-below-worst",
        place: "section 4.6",
        text: "“Fully 45 % of the LSTM population fail to outperform the worst aLSTM configuration” ({place}; met \
               within 10 points)",
        judged_by: ROBUSTNESS,
    }

    RobustnessWikitext2LstmBelowWorst {
        name: "robustness-wikitext2-lstm-below-worst",
        place: "section 4.6",
        text: "On WikiText-2 “80 % of the LSTM population failing to outperform the worst-case aLSTM configuration” \
               ({place}; met within 10 points)",
        judged_by: ROBUSTNESS,
    }

    RobustnessSameLevel {
        name: "robustness-same-level",
        place: "section 4.6",
        text: "“The 90th percentile of the aLSTM distribution is on the same level as the 10th percentile of the \
               LSTM distribution” ({place}; met within 5 % or if it is lower)",
        judged_by: ROBUSTNESS,
    }

    EfficiencyFewerParameters {
        name: "efficiency-fewer-parameters",
        place: "section 1",
        text: "Adaptation can “outperform the baseline using 30–50 % fewer parameters” ({place}): at the validation \
               perplexity of LSTMs of several sizes, the adaptive LSTM with recurrent policy needs at least 30 % fewer, \
               wherever that perplexity lies within its curve",
        judged_by: EFFICIENCY,
    }

    EfficiencyFasterAndMoreEfficient {
        name: "efficiency-faster-and-more-efficient",
        place: "section 1",
        text: "The adaptive LSTM “enjoys both faster convergence and greater statistical efficiency” ({place}): in every \
               size it is at the LSTM's best validation perplexity in an earlier epoch, and it needs fewer words for the \
               LSTM's perplexity",
        judged_by: EFFICIENCY,
    }

    ChoicesIoIsMorePowerful {
        name: "choices-io-is-more-powerful",
        place: "section 2.2",
        text: "“IO-adaptation is much more powerful than either input- or output-adaptation alone” ({place}; met from 1 %)",
        judged_by: CHOICES,
    }

    ChoicesLowRankHarms {
        name: "choices-low-rank-harms",
        place: "section 2.2",
        text: "SVA “limits the model's capacity by enforcing a low-rank factorization, which also tends to impact training \
               negatively” ({place}): on the maps of an adaptive LSTM it is behind IO-adaptation at equal parameters",
        judged_by: CHOICES,
    }

    ChoicesTyingConverges {
        name: "choices-tying-converges",
        place: "section 3",
        text: "Tying the input adaptations of all gates “speeds up convergence considerably” ({place}): the tied model is at \
               the untied one's best validation loss in an earlier epoch",
        judged_by: CHOICES,
    }

    PtbLstmNeedsClipping {
        name: "ptb-lstm-needs-clipping",
        place: "section 4.3",
        text: "“For the standard LSTM to converge at all, gradient clipping is required” ({place}): without it every seed \
               fails to converge",
        judged_by: CHOICES,
    }

    PtbLstmNeedsLessDropout {
        name: "ptb-lstm-needs-less-dropout",
        place: "section 4.3",
        text: "For the standard LSTM to converge at all, “dropout rates must be reduced by ~25 %” ({place}): with the \
               adaptive LSTM's own rates every seed fails to converge",
        judged_by: CHOICES,
    }

    PtbRatesAreFragile {
        name: "ptb-rates-are-fragile",
        place: "section 4.3",
        text: "“A percentage point change to these rates cause either severe overfitting or failure to converge” \
               ({place}): with all rates a point higher or lower, the LSTM's validation perplexity is 10 % higher, or it \
               fails to converge",
        judged_by: CHOICES,
    }

    ChoicesMoreLayers {
        name: "choices-more-layers",
        place: "section 4.3",
        text: "“More layers tend to perform better” ({place}): at equal parameters an adaptive LSTM of two layers is better \
               than one of one, and those of three and four are better than that of two",
        judged_by: CHOICES,
    }

    CostMinimal {
        name: "cost-minimal",
        place: "section 1",
        text: "Layers that adapt “run at minimal additional cost” ({place})",
        judged_by: JudgedBy::Nobody("timed by `adaparam bench`, not here"),
    }

    CostTyingHalves {
        name: "cost-tying-halves",
        place: "section 3",
        text: "Tying the input adaptations of all gates “approximately halves the computation time” ({place})",
        judged_by: JudgedBy::Nobody(
            "timed by `adaparam bench step --readable --set model.cell.tying=untied`",
        ),
    }

    PtbWallClock {
        name: "ptb-wall-clock",
        place: "section 4.3",
        text: "“The aLSTM converges approximately ~25 % faster in wall-clock time” than the AWD-LSTM on the Penn \
               Treebank ({place}; met within 10 points): 180 epochs against 500",
        judged_by: JudgedBy::StepTimes,
    }

    Wikitext2WallClock {
        name: "wikitext2-wall-clock",
        place: "section 4.4",
        text: "“The aLSTM trains ~40 % faster in wall-clock time” than the AWD-LSTM on WikiText-2 ({place}; \
               met within 10 points): 190 epochs against 700",
        judged_by: JudgedBy::StepTimes,
    }

    AblationLowerDropout {
        name: "ablation-lower-dropout",
        place: "section 4.5",
        text: "The aLSTM with a feed-forward adaptation model and output adaptation “needed slightly lower dropout \
               rates to converge to good performance” ({place})",
        judged_by: JudgedBy::Nobody("it is trained with the lower rates only"),
    }

    RobustnessWikitext2 {
        name: "robustness-wikitext2",
        place: "section 4.6",
        text: "On WikiText-2 “half of the LSTM population” fails to converge and “80 % of the LSTM population” fails \
               to outperform the worst aLSTM ({place})",
        judged_by: JudgedBy::Nobody("judged by `adaparam reproduce robustness --set data.set=wikitext-2`"),
    }
}
