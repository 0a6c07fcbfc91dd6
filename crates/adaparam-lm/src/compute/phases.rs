//! Where the time of a training step goes.

use std::time::{Duration, Instant};

/// A part of a training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Rows of the embedding.
    Embedding,
    /// Weights into the order in which products read them.
    Packing,
    /// The layers, step by step.
    Forward,
    /// Scores, losses and their gradients.
    Softmax,
    /// The layers backward, step by step.
    ThroughTime,
    /// Gradients of the layers' matrices.
    WeightGradients,
    /// Gradients of the rows of the embedding.
    EmbeddingGradient,
    /// All of these as tensor operations, which cannot be told apart.
    TensorOperations,
    /// Gradients of the parts of a batch, added, and those of other ranks waited for.
    GradientSum,
    /// The update.
    Optimiser,
}

/// Every phase, in the order of a step.
pub const PHASES: [Phase; 10] = [
    Phase::Embedding,
    Phase::Packing,
    Phase::Forward,
    Phase::Softmax,
    Phase::ThroughTime,
    Phase::WeightGradients,
    Phase::EmbeddingGradient,
    Phase::TensorOperations,
    Phase::GradientSum,
    Phase::Optimiser,
];

impl Phase {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Packing => "packing",
            Self::Forward => "forward",
            Self::Softmax => "softmax",
            Self::ThroughTime => "through time",
            Self::WeightGradients => "weight gradients",
            Self::EmbeddingGradient => "embedding gradient",
            Self::TensorOperations => "forward and backward",
            Self::GradientSum => "sum of gradients",
            Self::Optimiser => "optimiser",
        }
    }
}

/// The time of each phase of one step.
#[derive(Debug, Clone)]
pub struct Phases {
    times: [Duration; PHASES.len()],
    last: Instant,
}

impl Phases {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self {
            times: [Duration::ZERO; PHASES.len()],
            last: Instant::now(),
        }
    }

    /// Counts the time since the last call for `phase`.
    pub fn done(&mut self, phase: Phase) {
        let now = Instant::now();
        self.times[phase as usize] += now - self.last;
        self.last = now;
    }

    /// Adds the times of another clock, and counts from now on.
    pub fn add(&mut self, other: &Self) {
        for (time, more) in self.times.iter_mut().zip(other.times) {
            *time += more;
        }
        self.last = Instant::now();
    }

    /// The time of a phase.
    pub fn of(&self, phase: Phase) -> Duration {
        self.times[phase as usize]
    }
}
