use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use burn::tensor::{Device, Int, Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};

/// The floating-point type with which a file was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatKind {
    F32,
    F64,
}

/// A file of named tensors, read as f64 whatever their type.
pub(crate) struct Archive {
    pub(crate) float_kind: FloatKind,
    tensors: BTreeMap<String, Numbers>,
    metadata: HashMap<String, String>,
}

/// The numbers of one tensor, the last axis running fastest.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

impl Archive {
    pub(crate) fn read(path: &Path) -> Self {
        let bytes =
            std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = SafeTensors::deserialize(&bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (_, metadata) =
            SafeTensors::read_metadata(&bytes).expect("the header was read once already");
        let wide = file.iter().any(|(_, view)| view.dtype() == Dtype::F64);
        Self {
            float_kind: if wide { FloatKind::F64 } else { FloatKind::F32 },
            tensors: file
                .iter()
                .map(|(name, view)| {
                    let numbers = Numbers {
                        shape: view.shape().to_vec(),
                        values: decode(view.dtype(), view.data()),
                    };
                    (name.to_owned(), numbers)
                })
                .collect(),
            metadata: metadata.metadata().clone().unwrap_or_default(),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> &Numbers {
        self.tensors
            .get(name)
            .unwrap_or_else(|| panic!("the file has no tensor {name}"))
    }

    pub(crate) fn scalar(&self, name: &str) -> f64 {
        self.get(name).values[0]
    }

    pub(crate) fn tensor<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D> {
        self.get(name).tensor(device)
    }

    pub(crate) fn ints<const D: usize>(&self, name: &str, device: &Device) -> Tensor<D, Int> {
        let Numbers { shape, values } = self.get(name);
        let ints: Vec<i64> = values.iter().map(|value| *value as i64).collect();
        Tensor::from_data(TensorData::new(ints, shape.clone()), device)
    }

    pub(crate) fn metadata(&self, key: &str) -> &str {
        self.metadata
            .get(key)
            .unwrap_or_else(|| panic!("the file's metadata have no {key}"))
    }

    /// How many names there are that are numbered from `first` on between `prefix` and `suffix`.
    pub(crate) fn count(&self, prefix: &str, first: usize, suffix: &str) -> usize {
        (first..first + self.tensors.len())
            .take_while(|number| self.has(&format!("{prefix}{number}{suffix}")))
            .count()
    }
}

impl Numbers {
    pub(crate) fn tensor<const D: usize>(&self, device: &Device) -> Tensor<D> {
        Tensor::from_data(
            TensorData::new(self.values.clone(), self.shape.clone()),
            device,
        )
    }

    pub(crate) fn of<const D: usize>(tensor: &Tensor<D>) -> Self {
        Self {
            shape: tensor.dims().to_vec(),
            values: tensor.try_to_vec_as().expect("floats can be read as f64"),
        }
    }
}

fn decode(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        Dtype::F32 => numbers(bytes, |b| f64::from(f32::from_le_bytes(b))),
        Dtype::F64 => numbers(bytes, f64::from_le_bytes),
        Dtype::I64 => numbers(bytes, |b| i64::from_le_bytes(b) as f64),
        other => panic!("golden vectors hold no {other:?}"),
    }
}

fn numbers<const N: usize>(bytes: &[u8], decode: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    let chunks = bytes.chunks_exact(N);
    chunks
        .map(|chunk| decode(chunk.try_into().expect("chunks are N bytes long")))
        .collect()
}
