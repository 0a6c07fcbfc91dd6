//! The choice of a device.

use burn::tensor::Device;
use clap::ValueEnum;

/// Where tensors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceKind {
    /// This computer's processor.
    Cpu,
    /// A graphics card, through WebGPU.
    #[cfg(feature = "wgpu")]
    Wgpu,
    /// A graphics card of Apple's.
    #[cfg(feature = "metal")]
    Metal,
    /// A graphics card of NVIDIA's.
    #[cfg(feature = "cuda")]
    Cuda,
    /// A graphics card of AMD's.
    #[cfg(feature = "rocm")]
    Rocm,
}

impl DeviceKind {
    pub(crate) fn device(self) -> Device {
        match self {
            Self::Cpu => Device::flex(),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
            #[cfg(feature = "metal")]
            Self::Metal => Device::metal(burn::tensor::DeviceKind::DefaultDevice),
            #[cfg(feature = "cuda")]
            Self::Cuda => Device::cuda(0usize),
            #[cfg(feature = "rocm")]
            Self::Rocm => Device::rocm(0usize),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            #[cfg(feature = "wgpu")]
            Self::Wgpu => "wgpu",
            #[cfg(feature = "metal")]
            Self::Metal => "metal",
            #[cfg(feature = "cuda")]
            Self::Cuda => "cuda",
            #[cfg(feature = "rocm")]
            Self::Rocm => "rocm",
        }
    }

    /// Runs that this device can hold side by side.
    pub(crate) fn runs_at_a_time(self) -> usize {
        match self {
            Self::Cpu => std::thread::available_parallelism().map_or(1, usize::from),
            #[cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]
            _ => 1,
        }
    }
}
