//! The choice of a device.

use std::ffi::OsStr;

use burn::tensor::Device;
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, ValueEnum};

/// Devices that this program may have been built without.
const FEATURES: [(&str, bool); 4] = [
    ("wgpu", cfg!(feature = "wgpu")),
    ("metal", cfg!(feature = "metal")),
    ("cuda", cfg!(feature = "cuda")),
    ("rocm", cfg!(feature = "rocm")),
];

/// How to get a program with a feature.
pub(crate) fn how_to_build_in(feature: &str) -> String {
    format!("cargo install --path crates/adaparam-cli --features {feature}")
}

/// Reads the name of a device, and says how to get one that is not built in.
#[derive(Debug, Clone)]
pub(crate) struct DeviceName;

impl TypedValueParser for DeviceName {
    type Value = DeviceKind;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<DeviceKind, clap::Error> {
        let missing = FEATURES
            .iter()
            .find(|(name, is_built_in)| value == *name && !is_built_in);
        let Some((feature, _)) = missing else {
            return EnumValueParser::<DeviceKind>::new().parse_ref(command, argument, value);
        };
        let how = how_to_build_in(feature);
        let message = format!(
            "--device {feature}: is not built into this program; in its source folder: {how}\n"
        );
        Err(clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = DeviceKind::value_variants().iter();
        let values: Vec<PossibleValue> = values.filter_map(ValueEnum::to_possible_value).collect();
        Some(Box::new(values.into_iter()))
    }
}

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
