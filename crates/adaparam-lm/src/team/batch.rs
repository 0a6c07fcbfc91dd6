//! The step of a batch, whoever computes its parts.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_data::text::{Columns, Span};
use adaparam_kernels::Engine;

use super::gradient_sum::GradientSum;
use super::{Share, Team};
use crate::compute::{Carried, Learner, Machine, Phase, Phases};
use crate::config::LanguageModelConfig;
use crate::evaluate::sum;
use crate::masks::WindowMasks;
use crate::weights::Weights;

/// Computes the losses of batches and their gradients: this rank its parts, and together with the others the whole.
pub(crate) struct BatchLearner<'a> {
    team: &'a dyn Team,
    share: Share,
    /// The columns of each part of this rank, and which of the batch they are.
    columns: Vec<(Columns, Range<usize>)>,
    /// What each part of this rank carries into the next window.
    carried: Vec<Option<Carried>>,
    learner: Box<dyn Learner>,
    /// None where the whole batch is one part.
    sum: Option<GradientSum>,
    /// Of all parts of this rank together.
    phases: Phases,
}

/// What is drawn for some columns of a window.
pub(crate) struct WindowDraws {
    /// What is dropped.
    pub(crate) masks: WindowMasks,
    /// The columns that forget what they carry.
    pub(crate) forgets: Option<Vec<bool>>,
}

/// What a batch came to, the same at every rank.
pub(crate) struct BatchLoss {
    /// The mean of the losses of all its words.
    pub(crate) loss: f64,
    /// Whether a rank was told to stop.
    pub(crate) stop: bool,
}

impl<'a> BatchLearner<'a> {
    /// For batches of these columns, before the first window.
    pub(crate) fn new(
        config: &LanguageModelConfig,
        vocabulary: usize,
        columns: &Columns,
        machine: &Machine,
        team: &'a dyn Team,
    ) -> Self {
        let share = Share::of(&config.train, team);
        let shapes = config.model.parameter_shapes(vocabulary);
        let lengths = shapes.iter().map(crate::weights::ParameterShape::count);
        let mut learner = machine.learner(&config.model, vocabulary);
        learner.penalise(config.train.penalties());
        Self {
            columns: share
                .columns()
                .map(|own| (columns.some(own.clone()), own))
                .collect(),
            carried: share.split(None),
            learner,
            sum: (share.parts > 1).then(|| GradientSum::new(share.clone(), lengths.collect())),
            share,
            team,
            phases: Phases::start(),
        }
    }

    /// Goes on from what the whole batch carries, or from zeros.
    pub(crate) fn carry(&mut self, whole: Option<Carried>) {
        self.carried = self.share.split(whole);
    }

    /// What the whole batch carries into the next window; all ranks come together for that.
    pub(crate) fn carried(&self) -> Option<Carried> {
        self.share.join(&self.carried, self.team)
    }

    /// Reads the window at `span` forward and backward. `drawn` draws for some columns; `stop` is set
    /// where this rank is told to stop, and looked at as late as can be.
    pub(crate) fn learn(
        &mut self,
        engine: &Engine,
        weights: &Weights,
        span: Span,
        drawn: impl Fn(&Range<usize>) -> WindowDraws,
        stop: &AtomicBool,
    ) -> BatchLoss {
        let mut message = vec![0];
        let parts = self.share.own.clone();
        let mut words = 0;
        self.phases = Phases::start();
        for ((part, (columns, own)), carried) in parts.zip(&self.columns).zip(&mut self.carried) {
            let window = columns.window(span.start, span.length);
            let WindowDraws { masks, forgets } = drawn(own);
            let mut before = carried.take();
            if let (Some(before), Some(forgets)) = (&mut before, forgets) {
                before.forget(&forgets);
            }
            let after = self
                .learner
                .learn(engine, weights, &window, before, Some(&masks));
            *carried = Some(after);
            words += window.targets.len();
            message.extend(sum(self.learner.losses()).to_le_bytes());
            self.phases.add(self.learner.phases());
            if let Some(sum) = &mut self.sum {
                sum.push(engine, part, &self.learner.gradients());
                self.phases.done(Phase::GradientSum);
            }
        }
        message[0] = u8::from(stop.load(Ordering::Relaxed));
        let said = self.team.gather(&message);
        let sums = said.iter().flat_map(|said| {
            let (sums, _) = said[1..].as_chunks::<8>();
            sums.iter().map(|bytes| f64::from_le_bytes(*bytes))
        });
        let total: f64 = sums.sum();
        BatchLoss {
            loss: total / (words * self.team.ranks()) as f64,
            stop: said.iter().any(|said| said[0] == 1),
        }
    }

    /// The gradients of the whole batch, in the order of the weights; all ranks come together for that.
    pub(crate) fn gradients(&mut self, engine: &Engine) -> Vec<&[f32]> {
        match &mut self.sum {
            None => self.learner.gradients(),
            Some(sum) => {
                let gradients = sum.finish(engine, self.team);
                self.phases.done(Phase::GradientSum);
                gradients
            }
        }
    }

    /// Where the time of the last batch went.
    pub(crate) fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
