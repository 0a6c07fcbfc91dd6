//! The choice of what computes: threads, device, instructions.

use adaparam_lm::{Instructions, Means, Place};
use anyhow::Context;
use clap::Args;

use crate::device::DeviceKind;
use crate::training::threads;

/// What a person says about what computes a language model.
#[derive(Debug, Clone, Args)]
pub(crate) struct ComputeChoice {
    /// Threads to compute with; they do not change the results [default: `RAYON_NUM_THREADS`, or one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Where to compute: on the processor by its own kernels, elsewhere by tensor operations
    #[arg(long, value_enum, default_value_t = DeviceKind::Cpu)]
    pub(crate) device: DeviceKind,
    /// Instruction set of the processor's kernels: avx512, avx2, neon or portable; results differ between them in their
    /// last bits [default: the best that the processor has]
    #[arg(long, value_name = "NAME")]
    pub(crate) instructions: Option<String>,
}

impl ComputeChoice {
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

fn instructions(name: &str) -> anyhow::Result<Instructions> {
    Instructions::named(name).with_context(|| {
        let there: Vec<&str> = Instructions::available().into_iter().map(Instructions::name).collect();
        format!(
            "--instructions = {name}: this processor, or this build, has no instruction set of this name; it has {}",
            there.join(", ")
        )
    })
}
