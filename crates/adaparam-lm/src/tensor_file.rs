//! Named tensors in safetensors files.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use adaparam_runs::RunError;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::LmError;

/// The key of the file's note among its metadata.
const NOTE: &str = "adaparam";

/// The content of a safetensors file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TensorFile {
    /// The tensors by name.
    pub tensors: BTreeMap<String, StoredTensor>,
    /// What the file says of itself, if it was written by this project.
    pub note: Option<String>,
}

/// One tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTensor {
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// The numbers, the last axis running fastest.
    pub values: Vec<f32>,
}

impl TensorFile {
    /// The bytes of the file; equal contents give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes: Vec<(&String, &StoredTensor, Vec<u8>)> = self
            .tensors
            .iter()
            .map(|(name, tensor)| {
                let bytes = tensor.values.iter().flat_map(|value| value.to_le_bytes());
                (name, tensor, bytes.collect())
            })
            .collect();
        let views = bytes.iter().map(|(name, tensor, bytes)| {
            let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
            (*name, view.expect("as many numbers as the shape says"))
        });
        // More than one entry would come in random order.
        let note = self
            .note
            .clone()
            .map(|note| HashMap::from([(NOTE.to_owned(), note)]));
        safetensors::serialize(views, note).expect("floats can be written")
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, LmError> {
        let bytes = fs::read(path).map_err(RunError::file(path, "cannot read this file"))?;
        Self::parse(path, &bytes)
    }

    /// Reads the bytes of a file; `path` is the place that errors name. Double floats become single ones.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, LmError> {
        let fault = |problem: String| LmError::Weights {
            path: path.to_path_buf(),
            problem,
        };
        let file = SafeTensors::deserialize(bytes)
            .map_err(|error| fault(format!("this is no safetensors file: {error}")))?;
        let (_, metadata) = SafeTensors::read_metadata(bytes)
            .map_err(|error| fault(format!("this is no safetensors file: {error}")))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            let values = numbers(view.dtype(), view.data()).ok_or_else(|| {
                fault(format!(
                    "{name} holds {:?}: must be F32 or F64",
                    view.dtype()
                ))
            })?;
            let shape = view.shape().to_vec();
            tensors.insert(name.to_owned(), StoredTensor { shape, values });
        }
        let note = metadata.metadata().as_ref().and_then(|all| all.get(NOTE));
        Ok(Self {
            tensors,
            note: note.cloned(),
        })
    }
}

/// What a safetensors file tells before its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorHead {
    /// Kind of numbers and length of each axis, by the name of the tensor.
    pub tensors: BTreeMap<String, (String, Vec<usize>)>,
    /// What the file says of itself, if it was written by this project.
    pub note: Option<String>,
    /// What else it says.
    pub metadata: BTreeMap<String, String>,
}

impl TensorHead {
    /// Reads the head of a file, whatever numbers it holds.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is no safetensors file.
    pub fn read(path: &Path) -> Result<Self, LmError> {
        let bytes = fs::read(path).map_err(RunError::file(path, "cannot read this file"))?;
        let fault = |error| LmError::Weights {
            path: path.to_path_buf(),
            problem: format!("this is no safetensors file: {error}"),
        };
        let (_, head) = SafeTensors::read_metadata(&bytes).map_err(fault)?;
        let tensors = head.tensors().into_iter().map(|(name, info)| {
            let kind = format!("{:?}", info.dtype);
            (name, (kind, info.shape.clone()))
        });
        let mut metadata: BTreeMap<String, String> = head
            .metadata()
            .clone()
            .unwrap_or_default()
            .into_iter()
            .collect();
        Ok(Self {
            tensors: tensors.collect(),
            note: metadata.remove(NOTE),
            metadata,
        })
    }
}

fn numbers(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    match dtype {
        Dtype::F32 => Some(
            bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|chunk| f32::from_le_bytes(*chunk))
                .collect(),
        ),
        Dtype::F64 => Some(
            bytes
                .as_chunks::<8>()
                .0
                .iter()
                .map(|chunk| f64::from_le_bytes(*chunk) as f32)
                .collect(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let tensor = |values: Vec<f32>| StoredTensor {
            shape: vec![values.len()],
            values,
        };
        let file = TensorFile {
            tensors: BTreeMap::from([
                ("b".to_owned(), tensor(vec![1.5, -0.0])),
                ("a".to_owned(), tensor(vec![f32::MIN_POSITIVE])),
            ]),
            note: Some("{\"format\": 1}".to_owned()),
        };
        assert_eq!(
            TensorFile::parse("x".as_ref(), &file.to_bytes()).unwrap(),
            file
        );
    }

    #[test]
    fn other_files_are_named() {
        let error = TensorFile::parse("x.bin".as_ref(), b"something else").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("x.bin: this is no safetensors"),
            "{error}"
        );
    }
}
