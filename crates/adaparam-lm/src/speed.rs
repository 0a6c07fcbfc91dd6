//! How fast a language model is trained, evaluated and generates on this machine, next to the machine's limits.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use adaparam_data::draw::{Draws, Purpose};
use adaparam_data::text::{Columns, Span};
use adaparam_kernels::{Engine, peak};
use burn::tensor::Device;
use serde::Serialize;

use crate::LmError;
use crate::compute::{Machine, Means, PHASES, Phase, Phases};
use crate::config::LanguageModelConfig;
use crate::generate::{Generator, Sampling};
use crate::masks::{Droppable, MaskPlace, WindowMasks};
use crate::model::LanguageModel;
use crate::optimiser::Optimiser;
use crate::team::{Alone, BatchLearner, Team, WindowDraws};
use crate::weight_drop::WeightDrop;
use crate::weights::Weights;

/// Words generated in one measurement: fewer would be too short for the clock and the caches to settle.
const WORDS_AT_ONCE: usize = 20;
/// The first repetitions make buffers and do not count.
const WARM_UP: usize = 2;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Training steps: draws of dropout, forward, backward, update.
    Step,
    /// Evaluation of windows.
    Eval,
    /// Words drawn one after the other, of so many texts at once.
    Generate(usize),
}

impl Serialize for Activity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Step => "step",
            Self::Eval => "eval",
            Self::Generate(_) => "generate",
        })
    }
}

/// What was measured. Times are medians, with the quartiles as their spread.
#[derive(Debug, Clone, Serialize)]
pub struct Speed {
    /// What was measured.
    pub what: Activity,
    /// What computed it.
    pub means: Means,
    /// The number of parameters.
    pub parameters: usize,
    /// Columns.
    pub batch: usize,
    /// Rows of a window.
    pub window: usize,
    /// Groups of columns whose gradients are added.
    pub parts: usize,
    /// Threads, of each rank where there are several.
    pub threads: usize,
    /// As [`Machine::computes_with`] says.
    pub instructions: String,
    /// What products are computed in.
    pub precision: &'static str,
    /// How many were measured, after the first ones.
    pub repetitions: usize,
    /// Milliseconds of a training step, a window, or a word of every text.
    pub ms_per_step: f64,
    /// Its lower quartile.
    pub ms_lower_quartile: f64,
    /// Its upper quartile.
    pub ms_upper_quartile: f64,
    /// Words a second.
    pub words_per_s: f64,
    /// Billions of operations of a step: a multiplication and an addition for each weight and row, three times in
    /// training.
    pub gflop_per_step: f64,
    /// Billions of operations a second.
    pub gflops: f64,
    /// The same of a loop of multiply-adds that touches no memory, run between the steps; the median.
    pub fma_peak_gflops: f64,
    /// The one as a fraction of the other.
    pub fraction_of_peak: f64,
    /// Billions of bytes a second that are read from a buffer as large as the weights.
    pub memory_gbps: f64,
    /// The most memory that the process has had, where the system tells.
    pub peak_rss_mb: Option<f64>,
    /// Where the time of a training step goes.
    pub phases: Vec<PhaseSpeed>,
    /// What several ranks have to do with each other; nothing where there is one.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
}

/// A training step that several ranks make together.
#[derive(Debug, Clone, Serialize)]
pub struct Together {
    /// How many there are.
    pub ranks: usize,
    /// Milliseconds of a step in communication, waiting for other ranks included; the median of the first rank.
    pub communication_ms: f64,
    /// Millions of bytes that all ranks together send in a step.
    pub sent_mb_per_step: f64,
    /// Milliseconds of the same step by the first rank alone, with the threads of one rank and the batch in one part.
    pub alone_ms_per_step: f64,
    /// That time, shared between all ranks, as a fraction of what a step takes.
    pub efficiency: f64,
}

/// The speed of one phase of a training step.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseSpeed {
    /// Its name.
    pub phase: &'static str,
    /// Milliseconds, the median.
    pub ms: f64,
    /// Billions of operations a second, where products are what it does.
    pub gflops: Option<f64>,
    /// Billions of bytes of parameters, gradients and moments a second, where moving them is what it does.
    pub gbps: Option<f64>,
}

/// Measures what a model of `config` does with a vocabulary of so many words. Words are random: speed does not depend
/// on what they say. `watch` is told how many repetitions are done.
///
/// Training steps are made by the whole team, and then by its first rank alone; every rank calls this.
pub fn measure(
    config: &LanguageModelConfig,
    vocabulary: usize,
    what: Activity,
    repetitions: usize,
    machine: &Machine,
    team: &dyn Team,
    watch: &mut dyn FnMut(usize),
) -> Result<Speed, LmError> {
    let (spec, train) = (&config.model, &config.train);
    let engine = &machine.engine;
    let parameters = spec.parameter_count(vocabulary);
    let memory_gbps = peak::memory_gbps(engine, parameters * 4);
    let weights = || LanguageModel::new(spec, vocabulary, &Device::flex()).draw(train.seed);
    let (batch, window) = match what {
        Activity::Step => (train.batch, train.window),
        Activity::Eval => (train.valid_batch, train.window),
        Activity::Generate(texts) => (texts, 1),
    };
    let ids = random_words(vocabulary, batch * (window + 1));
    let columns = Columns::new(&ids, batch)?;
    let window = columns.window(0, window);
    let mut clock = Clock::new(engine, repetitions, watch);
    let mut phases: Vec<Phases> = Vec::new();
    let mut traffic: Vec<(Duration, u64)> = Vec::new();
    let mut words = window.targets.len();
    match what {
        Activity::Step => {
            let mut steps = Steps::new(config, vocabulary, &columns, machine, team);
            clock.run(|step| {
                let before = team.traffic();
                phases.push(steps.make(step));
                let after = team.traffic();
                let time = after.time.saturating_sub(before.time);
                traffic.push((time, after.sent - before.sent));
            });
        }
        Activity::Eval => {
            let weights = weights();
            let mut reader = machine.reader(spec, &weights, batch);
            clock.run(|_| {
                reader.losses(&window);
            });
        }
        Activity::Generate(texts) => {
            let (sampling, weights) = (Sampling::default(), weights());
            let mut generator = Generator::several(machine, spec, &weights, sampling, texts);
            let mut last = vec![0; texts];
            words = texts * WORDS_AT_ONCE;
            clock.run(|_| {
                for _ in 0..WORDS_AT_ONCE {
                    last = generator.next_of_each(&last, None);
                }
            });
        }
    }
    let [lower, median, upper] = quartiles(&mut clock.times);
    let [_, fma_peak, _] = quartiles(&mut clock.peaks);
    let together = (what == Activity::Step && team.ranks() > 1).then(|| {
        together(
            config, vocabulary, &columns, machine, team, &traffic, median,
        )
    });
    let fma_peak = match &together {
        Some(together) => fma_peak * together.ranks as f64,
        None => fma_peak,
    };
    let products = match what {
        Activity::Step => 3,
        Activity::Eval | Activity::Generate(_) => 1,
    };
    let gflop = |weights: usize| 2e-9 * (products * words * weights) as f64;
    let per_unit = match what {
        Activity::Generate(_) => 1.0 / WORDS_AT_ONCE as f64,
        Activity::Step | Activity::Eval => 1.0,
    };
    let gflops = gflop(parameters) / median;
    Ok(Speed {
        what,
        means: machine.means,
        parameters,
        batch,
        window: window.steps,
        parts: train.parts,
        threads: engine.pool().threads(),
        instructions: machine.computes_with(spec),
        precision: machine.engine.precision().name(),
        repetitions,
        ms_per_step: 1e3 * median * per_unit,
        ms_lower_quartile: 1e3 * lower * per_unit,
        ms_upper_quartile: 1e3 * upper * per_unit,
        words_per_s: words as f64 / median,
        gflop_per_step: gflop(parameters) * per_unit,
        gflops,
        fma_peak_gflops: fma_peak,
        fraction_of_peak: gflops / fma_peak,
        memory_gbps,
        peak_rss_mb: peak_memory_mb(),
        phases: phase_speeds(
            &phases[phases.len().min(WARM_UP)..],
            parameters,
            vocabulary * spec.embedding,
            words,
        ),
        together,
    })
}

/// Training steps of one window.
struct Steps<'a> {
    machine: &'a Machine,
    config: &'a LanguageModelConfig,
    batch: BatchLearner<'a>,
    weights: Weights,
    optimiser: Box<dyn Optimiser>,
    droppable: Droppable,
    weight_drop: WeightDrop,
    span: Span,
}

impl<'a> Steps<'a> {
    fn new(
        config: &'a LanguageModelConfig,
        vocabulary: usize,
        columns: &Columns,
        machine: &'a Machine,
        team: &'a dyn Team,
    ) -> Self {
        let (spec, train) = (&config.model, &config.train);
        let model = LanguageModel::new(spec, vocabulary, &Device::flex());
        let droppable = model.droppable();
        let weight_drop = WeightDrop::new(&model, train.dropout.weight);
        let weights = model.draw(train.seed);
        Self {
            machine,
            config,
            batch: BatchLearner::new(config, vocabulary, columns, machine, team),
            optimiser: train.new_optimiser(&weights),
            weight_drop,
            weights,
            droppable,
            span: Span {
                start: 0,
                length: columns.steps(),
            },
        }
    }

    /// Makes one; tells where its time went.
    fn make(&mut self, step: u64) -> Phases {
        let train = &self.config.train;
        let engine = &self.machine.engine;
        let place = MaskPlace {
            draws: Draws::new(train.seed),
            epoch: 0,
            step,
            first_column: 0,
        };
        let drawn = |own: &Range<usize>| {
            let place = MaskPlace {
                first_column: own.start,
                ..place
            };
            let shape = [self.span.length, own.len()];
            let (rates, sharing) = (&train.dropout, train.masks);
            WindowDraws {
                masks: WindowMasks::draw_shared(place, shape, &self.droppable, rates, sharing),
                forgets: None,
            }
        };
        let go_on = AtomicBool::new(false);
        let (batch, span) = (&mut self.batch, self.span);
        self.weight_drop
            .with_dropped(place, &mut self.weights, |weights| {
                batch.learn(engine, weights, span, drawn, &go_on)
            });
        let gradients = self.weight_drop.gradients(self.batch.gradients(engine));
        // Weights stay about as they are: this is no training.
        self.optimiser
            .update(engine, &mut self.weights, &gradients, 1e-6);
        self.batch.phases().done(Phase::Optimiser);
        self.batch.phases().clone()
    }
}

/// What the ranks had to do with each other in steps of `seconds`, beside the same steps by the first rank alone.
fn together(
    config: &LanguageModelConfig,
    vocabulary: usize,
    columns: &Columns,
    machine: &Machine,
    team: &dyn Team,
    traffic: &[(Duration, u64)],
    seconds: f64,
) -> Together {
    let traffic = &traffic[WARM_UP.min(traffic.len())..];
    let mut times: Vec<f64> = traffic.iter().map(|(time, _)| time.as_secs_f64()).collect();
    let sent = traffic.first().map_or(0, |(_, sent)| *sent);
    let all_sent = team.gather(&sent.to_le_bytes());
    let all_sent = all_sent.iter().filter_map(|bytes| {
        let bytes: [u8; 8] = bytes.as_slice().try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    });
    let all_sent: u64 = all_sent.sum();
    let mut alone = f64::NAN;
    if team.is_first() {
        let mut config = config.clone();
        config.train.parts = 1;
        let mut steps = Steps::new(&config, vocabulary, columns, machine, &Alone);
        let mut watch = |_| ();
        let mut clock = Clock::new(&machine.engine, times.len(), &mut watch);
        clock.run(|step| {
            steps.make(step);
        });
        alone = quartiles(&mut clock.times)[1];
    }
    team.wait_for_all();
    let ranks = team.ranks();
    Together {
        ranks,
        communication_ms: 1e3 * quartiles(&mut times)[1],
        sent_mb_per_step: all_sent as f64 / 1e6,
        alone_ms_per_step: 1e3 * alone,
        efficiency: alone / (ranks as f64 * seconds),
    }
}

/// Times repetitions, with the multiply-add peak taken between them.
struct Clock<'a> {
    engine: &'a Engine,
    repetitions: usize,
    watch: &'a mut dyn FnMut(usize),
    times: Vec<f64>,
    peaks: Vec<f64>,
}

impl<'a> Clock<'a> {
    fn new(engine: &'a Engine, repetitions: usize, watch: &'a mut dyn FnMut(usize)) -> Self {
        Self {
            engine,
            repetitions,
            watch,
            times: Vec::new(),
            peaks: Vec::new(),
        }
    }

    fn run(&mut self, mut work: impl FnMut(u64)) {
        (0..WARM_UP as u64).for_each(&mut work);
        for repetition in 0..self.repetitions {
            self.peaks.push(peak::fma_sustained(self.engine));
            let start = Instant::now();
            work((WARM_UP + repetition) as u64);
            self.times.push(start.elapsed().as_secs_f64());
            (self.watch)(repetition + 1);
        }
    }
}

fn random_words(vocabulary: usize, count: usize) -> Vec<u32> {
    let mut stream = Draws::new(0).stream(Purpose::Inspect, &[count as u64]);
    (0..count)
        .map(|_| stream.below(vocabulary as u64) as u32)
        .collect()
}

fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn phase_speeds(
    phases: &[Phases],
    parameters: usize,
    embedding: usize,
    words: usize,
) -> Vec<PhaseSpeed> {
    if phases.is_empty() {
        return Vec::new();
    }
    let seconds = |phase| {
        let mut times: Vec<f64> = phases
            .iter()
            .map(|phases| phases.of(phase).as_secs_f64())
            .collect();
        quartiles(&mut times)[1]
    };
    // The plain LSTM makes the gradients of its matrices while it goes back through time.
    let is_one_pass = seconds(Phase::WeightGradients) == 0.0;
    let products = |phase| match phase {
        Phase::TensorOperations => 3 * parameters,
        Phase::Softmax => 3 * embedding,
        Phase::ThroughTime if is_one_pass => 2 * (parameters - embedding),
        Phase::Forward | Phase::ThroughTime | Phase::WeightGradients => parameters - embedding,
        _ => 0,
    };
    // Packing reads and writes the weights; the optimiser reads gradients twice, weights and moments once, and
    // writes these two.
    let moved = |phase| match phase {
        Phase::Packing => 2 * parameters,
        Phase::Optimiser => 6 * parameters,
        _ => 0,
    };
    let rate = |amount: usize, each: f64, seconds: f64| {
        (amount > 0 && seconds > 0.0).then(|| 1e-9 * each * amount as f64 / seconds)
    };
    PHASES
        .into_iter()
        .filter(|&phase| seconds(phase) > 0.0)
        .map(|phase| PhaseSpeed {
            phase: phase.name(),
            ms: 1e3 * seconds(phase),
            gflops: rate(products(phase), 2.0 * words as f64, seconds(phase)),
            gbps: rate(moved(phase), 4.0, seconds(phase)),
        })
        .collect()
}

/// The most memory that this process has had; none where the system does not tell it in a file.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn every_activity_is_measured_and_adds_up() {
        let mut config = preset("quick").unwrap().config;
        config.model.embedding = 8;
        config.model.hidden = 12;
        let machine = Machine::cpu(1);
        for what in [
            Activity::Step,
            Activity::Eval,
            Activity::Generate(1),
            Activity::Generate(3),
        ] {
            let mut seen = 0;
            let mut watch = |done| seen = done;
            let speed = measure(&config, 50, what, 5, &machine, &Alone, &mut watch);
            let speed = speed.unwrap();
            assert_eq!(seen, 5);
            assert_eq!(speed.parameters, config.model.parameter_count(50));
            assert!(speed.ms_lower_quartile <= speed.ms_per_step);
            assert!(speed.ms_per_step <= speed.ms_upper_quartile);
            // The two are the same number, told in different units, up to rounding.
            let words = speed.words_per_s * speed.ms_per_step / 1e3;
            assert!((words - (speed.batch * speed.window) as f64).abs() < 1e-6);
            assert_eq!(speed.phases.is_empty(), what != Activity::Step);
        }
    }

    #[test]
    fn tensor_operations_are_one_phase_with_all_products() {
        let mut config = preset("quick").unwrap().config;
        config.model.embedding = 8;
        config.model.hidden = 12;
        let machine = Machine::cpu(1);
        let machine = Machine {
            means: Means::Tensors,
            ..machine
        };
        let speed = measure(
            &config,
            50,
            Activity::Step,
            3,
            &machine,
            &Alone,
            &mut |_| (),
        )
        .unwrap();
        let names: Vec<&str> = speed.phases.iter().map(|phase| phase.phase).collect();
        assert_eq!(names, ["forward and backward", "optimiser"]);
        let products = speed.phases[0].gflops.unwrap() * speed.phases[0].ms / 1e3;
        assert!((products / speed.gflop_per_step - 1.0).abs() < 1e-9);
    }
}
