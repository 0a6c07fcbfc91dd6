//! Named tensors in safetensors files.
//!
//! A file with a note of this project carries the SHA-256 of all its bytes, those of the sum itself taken as zeros: the
//! first entry of the note.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use adaparam_data::checksum::Checksum;
use adaparam_runs::{RunError, ordinary_file};
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensorError, SafeTensors, View};
use serde::Deserialize;

use crate::LmError;
use crate::stored_kind::StoredKind;

/// The key of the file's note among its metadata.
const NOTE: &str = "adaparam";
/// What stands for the sum while it is taken.
const NO_SUM: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Notes of this format and later ones have a sum.
const FIRST_WITH_SUM: u64 = 3;

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
    /// The bytes of the file; equal contents give equal bytes. A note that is a JSON object gets the sum of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_of(StoredKind::F32)
    }

    /// The bytes of the file with its numbers stored as `kind`.
    pub fn to_bytes_of(&self, kind: StoredKind) -> Vec<u8> {
        let tensors = self.tensors.iter().map(|(name, tensor)| {
            let stored = || Cow::Borrowed(tensor.values.as_slice());
            let tensor = LaterTensor::new(tensor.shape.clone(), stored);
            (name, LaterTensor { kind, ..tensor })
        });
        // More than one entry would come in random order.
        let note = self
            .note
            .as_ref()
            .map(|note| HashMap::from([(NOTE.to_owned(), with_sum(note, NO_SUM))]));
        let mut bytes = safetensors::serialize(tensors, note).expect("floats can be written");
        if let Some(at) = place_of(&bytes, &format!("sha256\\\":\\\"{NO_SUM}")) {
            let sum = Checksum::of(&bytes).to_string();
            let end = at + "sha256\\\":\\\"".len();
            bytes[end..end + sum.len()].copy_from_slice(sum.as_bytes());
        }
        bytes
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, LmError> {
        let bytes =
            ordinary_file::read(path).map_err(RunError::file(path, "cannot read this file"))?;
        Self::parse(path, &bytes)
    }

    /// Reads the bytes of a file; `path` is the place that errors name. Double and half floats become single ones.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, LmError> {
        let fault = |problem: String| LmError::Weights {
            path: path.to_path_buf(),
            problem,
        };
        let unreadable = |error| fault(problem_in_words(&error));
        let file = SafeTensors::deserialize(bytes).map_err(unreadable)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(unreadable)?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            let values = numbers(view.dtype(), view.data()).ok_or_else(|| {
                fault(format!(
                    "{name} holds {:?}: must be F32, F64, BF16 or F16",
                    view.dtype()
                ))
            })?;
            let shape = view.shape().to_vec();
            tensors.insert(name.to_owned(), StoredTensor { shape, values });
        }
        let note = metadata.metadata().as_ref().and_then(|all| all.get(NOTE));
        let note = note.map(|note| checked(path, bytes, note)).transpose()?;
        Ok(Self { tensors, note })
    }
}

/// Why a file cannot be read, without the names that code has for it.
fn problem_in_words(error: &SafeTensorError) -> String {
    let problem = match error {
        SafeTensorError::MetadataIncompleteBuffer => {
            return "the file ends before or after the numbers that its header tells of: copy or download it again".to_owned();
        }
        SafeTensorError::InvalidHeaderDeserialization(json) if json.is_data() => {
            "an entry of its header is not a tensor: each must have a kind of numbers such as F32, a shape and a place in the file"
        }
        SafeTensorError::InvalidHeaderDeserialization(_) => "its header is not JSON",
        SafeTensorError::InvalidHeader(_)
        | SafeTensorError::HeaderTooLarge
        | SafeTensorError::HeaderTooSmall
        | SafeTensorError::InvalidHeaderLength => {
            "it does not begin with a header, or ends within it"
        }
        SafeTensorError::InvalidOffset(name) => {
            return format!(
                "not a safetensors file (the place of {name} is outside of it, or another tensor's)"
            );
        }
        _ => "kind, shape and place of its tensors do not go together",
    };
    format!("not a safetensors file ({problem})")
}

/// The bytes of a file of tensors, each made only when its turn comes: the largest is all that is held besides.
pub(crate) fn to_bytes<'a>(
    tensors: impl IntoIterator<Item = (String, LaterTensor<'a>)>,
) -> Vec<u8> {
    safetensors::serialize(tensors, None).expect("floats can be written")
}

/// A tensor whose numbers are asked for when they are written.
pub(crate) struct LaterTensor<'a> {
    kind: StoredKind,
    shape: Vec<usize>,
    values: Box<dyn Fn() -> Cow<'a, [f32]> + 'a>,
}

impl<'a> LaterTensor<'a> {
    /// `values` gives as many numbers as the shape says.
    pub(crate) fn new(shape: Vec<usize>, values: impl Fn() -> Cow<'a, [f32]> + 'a) -> Self {
        Self {
            kind: StoredKind::F32,
            shape,
            values: Box::new(values),
        }
    }
}

impl View for LaterTensor<'_> {
    fn dtype(&self) -> Dtype {
        self.kind.dtype()
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let values = (self.values)();
        let mut bytes = Vec::with_capacity(self.data_len());
        for value in values.iter() {
            self.kind.write(*value, &mut bytes);
        }
        assert_eq!(bytes.len(), self.data_len(), "numbers of a tensor");
        Cow::Owned(bytes)
    }

    fn data_len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.kind.size()
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
        let bytes =
            ordinary_file::read(path).map_err(RunError::file(path, "cannot read this file"))?;
        let fault = |error| LmError::Weights {
            path: path.to_path_buf(),
            problem: problem_in_words(&error),
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
        let note = metadata.remove(NOTE);
        let note = note.map(|note| checked(path, &bytes, &note)).transpose()?;
        Ok(Self {
            tensors: tensors.collect(),
            note,
            metadata,
        })
    }
}

/// A note with the sum of its file as its first entry; one that is no JSON object stays what it is.
fn with_sum(note: &str, sum: &str) -> String {
    match note.strip_prefix('{') {
        Some(rest) if rest.trim_start().starts_with('}') => format!("{{\"sha256\":\"{sum}\"{rest}"),
        Some(rest) => format!("{{\"sha256\":\"{sum}\",{rest}"),
        None => note.to_owned(),
    }
}

/// The note of a file without its sum, if the sum is that of the file. Notes of before have none.
fn checked(path: &Path, bytes: &[u8], note: &str) -> Result<String, LmError> {
    #[derive(Deserialize)]
    struct Sum {
        sha256: Option<String>,
        #[serde(default)]
        format: u64,
    }
    let fault = |problem: &str| LmError::Weights {
        path: path.to_path_buf(),
        problem: format!("{problem}: the file is damaged; bring it back, or export it again"),
    };
    let Sum { sha256, format } =
        serde_json::from_str::<Sum>(note).map_err(|error| LmError::Weights {
            path: path.to_path_buf(),
            problem: format!("its metadata are not understood: {error}"),
        })?;
    let Some(sum) = sha256 else {
        return if format < FIRST_WITH_SUM {
            Ok(note.to_owned())
        } else {
            Err(fault("has no sum of its content"))
        };
    };
    let mut content = bytes.to_vec();
    if let Some(at) = place_of(&content, &sum) {
        content[at..at + sum.len()].fill(b'0');
    }
    if Checksum::of(&content).to_string() != sum {
        return Err(fault("is not what was written, by its SHA-256"));
    }
    let entry = format!("\"sha256\":\"{sum}\"");
    Ok(note
        .replacen(&format!("{entry},"), "", 1)
        .replacen(&entry, "", 1))
}

/// Where a text begins in bytes.
fn place_of(bytes: &[u8], text: &str) -> Option<usize> {
    bytes
        .windows(text.len().max(1))
        .position(|window| window == text.as_bytes())
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
        Dtype::BF16 => {
            let chunks = bytes.as_chunks::<2>().0.iter();
            Some(
                chunks
                    .map(|chunk| bf16::from_le_bytes(*chunk).to_f32())
                    .collect(),
            )
        }
        Dtype::F16 => {
            let chunks = bytes.as_chunks::<2>().0.iter();
            Some(
                chunks
                    .map(|chunk| f16::from_le_bytes(*chunk).to_f32())
                    .collect(),
            )
        }
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
            note: Some("{\"format\": 3}".to_owned()),
        };
        assert_eq!(
            TensorFile::parse("x".as_ref(), &file.to_bytes()).unwrap(),
            file
        );
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_without_names_of_code() {
        let file = |header: &str, numbers: usize| {
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend(header.bytes());
            bytes.resize(bytes.len() + numbers, 0);
            bytes
        };
        let tensor = |entry: &str| format!("{{\"a\":{{{entry}}}}}");
        let whole = tensor("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]");
        TensorFile::parse("x".as_ref(), &file(&whole, 4)).unwrap();
        let kind = tensor("\"dtype\":\"Q9\",\"shape\":[1],\"data_offsets\":[0,4]");
        let shape = tensor("\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]");
        let place = tensor("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]");
        let size = tensor("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]");
        for (bytes, words) in [
            (
                file("{\"a\":1}", 0),
                "an entry of its header is not a tensor",
            ),
            (file(&kind, 4), "an entry of its header is not a tensor"),
            (file(&shape, 4), "an entry of its header is not a tensor"),
            (file("hello", 0), "its header is not JSON"),
            (b"short".to_vec(), "it does not begin with a header"),
            (b"no tensors at all".to_vec(), "it does not begin with"),
            (file(&place, 8), "the place of a is outside of it"),
            (file(&size, 4), "do not go together"),
            (file(&whole, 2), "the file ends before or after"),
            (file(&whole, 6), "the file ends before or after"),
        ] {
            let error = TensorFile::parse("x".as_ref(), &bytes).unwrap_err();
            let told = error.to_string();
            assert!(told.contains(words), "{words}: {told}");
            for name in ["struct", "usize", "TensorInfo", "variant"] {
                assert!(!told.contains(name), "{told}");
            }
        }
    }

    #[test]
    fn half_numbers_are_read_as_what_they_were_rounded_to_and_the_sum_holds() {
        let values = vec![1.0, -0.3, 1e-3, 65_000.0];
        for kind in [StoredKind::Bf16, StoredKind::F16] {
            let tensor = StoredTensor {
                shape: vec![4],
                values: values.clone(),
            };
            let file = TensorFile {
                tensors: BTreeMap::from([("a".to_owned(), tensor)]),
                note: Some("{\"format\":3}".to_owned()),
            };
            let bytes = file.to_bytes_of(kind);
            assert!(bytes.len() < file.to_bytes().len());
            let read = TensorFile::parse("x".as_ref(), &bytes).unwrap();
            let rounded: Vec<f32> = values.iter().map(|&x| kind.rounded(x)).collect();
            assert_eq!(read.tensors["a"].values, rounded);
            assert_eq!(read.note, file.note);
            let mut flipped = bytes;
            *flipped.last_mut().unwrap() ^= 1;
            assert!(TensorFile::parse("x".as_ref(), &flipped).is_err());
        }
    }

    #[test]
    fn a_file_with_any_bit_flipped_is_refused() {
        let tensor = StoredTensor {
            shape: vec![2, 1],
            values: vec![1.5, -2.0],
        };
        let file = TensorFile {
            tensors: BTreeMap::from([("a".to_owned(), tensor)]),
            note: Some("{\"format\":3,\"vocabulary\":\"a\\nb\"}".to_owned()),
        };
        let bytes = file.to_bytes();
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = TensorFile::parse("x".as_ref(), &flipped);
            // A file without a note is nobody's: it is refused wherever a model is asked for.
            assert!(read.is_err() || read.unwrap().note.is_none(), "bit {bit}");
        }
    }

    #[test]
    fn notes_of_before_have_no_sum_and_are_read() {
        let note = "{\"format\":2}";
        let empty: [(&str, LaterTensor<'_>); 0] = [];
        let metadata = HashMap::from([(NOTE.to_owned(), note.to_owned())]);
        let bytes = safetensors::serialize(empty, Some(metadata)).unwrap();
        let read = TensorFile::parse("x".as_ref(), &bytes).unwrap();
        assert_eq!(read.note.as_deref(), Some(note));
    }

    #[test]
    fn other_files_are_named() {
        let error = TensorFile::parse("x.bin".as_ref(), b"something else").unwrap_err();
        assert!(
            error.to_string().starts_with("x.bin: not a safetensors"),
            "{error}"
        );
    }
}
