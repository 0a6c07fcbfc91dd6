//! The choice of what computes: threads, device, instructions, precision.

use adaparam_lm::{Instructions, LanguageModelConfig, Means, Place, Precision};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use crate::device::{DeviceKind, DeviceName};
use crate::training::threads;
use crate::typed_number::whole_number;

/// What a person says about what computes a language model.
#[derive(Debug, Clone, Args)]
pub(crate) struct ComputeChoice {
    /// Threads to compute with; they do not change the results [default: `RAYON_NUM_THREADS`, or one per core]
    #[arg(long, value_name = "N", value_parser = whole_number::<u16>(1..=1024), allow_negative_numbers = true)]
    pub(crate) threads: Option<u16>,
    /// Where to compute: on the processor by its own kernels, elsewhere by tensor operations
    #[arg(long, value_parser = DeviceName, default_value = "cpu")]
    pub(crate) device: DeviceKind,
    /// Instruction set of the processor's kernels: avx512, avx2, neon or portable, and for products in bf16 also amx or
    /// avx512dot; results differ between them in their last bits [default: the best that the processor has]
    #[arg(long, value_name = "NAME")]
    pub(crate) instructions: Option<String>,
}

/// What products are computed in where a model only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadingPrecision {
    /// All bits
    F32,
    /// Half of the bits: weights and what they are multiplied with have 8 bits of precision
    Bf16,
    /// A quarter: whole numbers of a byte times a scale for each row
    Int8,
}

impl From<ReadingPrecision> for Precision {
    fn from(precision: ReadingPrecision) -> Self {
        match precision {
            ReadingPrecision::F32 => Self::F32,
            ReadingPrecision::Bf16 => Self::Bf16,
            ReadingPrecision::Int8 => Self::Int8,
        }
    }
}

impl ComputeChoice {
    /// Refuses instructions that were named and have no products in this precision.
    pub(crate) fn check_precision(&self, precision: Precision) -> anyhow::Result<()> {
        let Some(name) = &self.instructions else {
            return Ok(());
        };
        if !instructions(name)?.multiplies(precision) {
            let all = Instructions::available().into_iter();
            let those = all.filter(|set| set.multiplies(precision));
            let those: Vec<&str> = those.map(Instructions::name).collect();
            bail!(
                "--instructions = {name}: has no products in {precision}; here {} {}",
                those.join(", "),
                if those.len() == 1 { "has" } else { "have" }
            );
        }
        Ok(())
    }

    /// Refuses a configuration whose precision this place does not have, before anything is written.
    pub(crate) fn check_training(
        &self,
        place: &Place,
        config: &LanguageModelConfig,
    ) -> anyhow::Result<()> {
        let precision = config.train.precision.into();
        self.check_precision(precision)?;
        place.run(|machine| {
            let told = machine.told_precision("train.precision", precision, &config.model);
            told.map(|_| ())
        })??;
        Ok(())
    }

    /// The same for one of several processes that share the cores of this machine, where no number was named.
    pub(crate) fn place_among(&self, neighbours: usize) -> anyhow::Result<Place> {
        let mut place = self.place()?;
        if self.threads.is_none() && neighbours > 1 {
            // A launcher may have given each process cores of its own.
            let fair = (all_cores() / neighbours).max(1);
            place.threads = place.threads.min(fair);
        }
        Ok(place)
    }

    /// What was said, if this machine has it.
    pub(crate) fn place(&self) -> anyhow::Result<Place> {
        let instructions = match &self.instructions {
            None => None,
            Some(name) => Some(instructions(name)?),
        };
        Ok(Place {
            threads: threads(self.threads),
            instructions,
            device: self.device.device(),
            means: Means::Kernels,
        })
    }
}

/// Cores of this machine, whichever this process may use.
fn all_cores() -> usize {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = told.lines().filter(|line| line.starts_with("processor"));
    match cores.count() {
        0 => cores_here(),
        cores => cores,
    }
}

fn cores_here() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn instructions(name: &str) -> anyhow::Result<Instructions> {
    Instructions::named(name).with_context(|| {
        let there: Vec<&str> = Instructions::available().into_iter().map(Instructions::name).collect();
        format!(
            "--instructions = {name}: this processor, or this build, has no instruction set of this name; it has {}",
            there.join(", ")
        )
    })
}
