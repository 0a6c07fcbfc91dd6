//! The tokens that a trained model knows.

use adaparam_data::text::Vocabulary as Tokens;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::Path;

/// The vocabulary of a model, and the way in which its texts are cut.
#[pyclass(frozen, module = "adaparam._native")]
pub(crate) struct Vocabulary(Tokens);

#[pymethods]
impl Vocabulary {
    /// Reads the content of a `vocabulary.txt`; `place` is what errors name.
    #[new]
    fn new(place: &str, content: &str) -> PyResult<Self> {
        let parsed = Tokens::parse(Path::new(place), content);
        let parsed = parsed.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(parsed))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// How texts are cut: `words`, `characters`, `bytes` or another way.
    #[getter]
    fn tokens(&self) -> String {
        self.0.tokens().name().to_owned()
    }

    /// The names of all tokens, by id.
    #[getter]
    fn names(&self) -> Vec<String> {
        let ids = 0..self.0.len() as u32;
        ids.filter_map(|id| self.0.word(id).map(str::to_owned))
            .collect()
    }

    /// The id of the token that ends a line. A text begins behind one.
    #[getter]
    fn line_end(&self) -> u32 {
        self.0.line_end()
    }

    /// The id of unknown tokens, if there is one.
    #[getter]
    fn unknown(&self) -> Option<u32> {
        self.0.unk()
    }

    /// The ids of a text, and the tokens that are not in the vocabulary: read as unknown, or left out if there is no such token.
    fn encode(&self, text: &str) -> (Vec<u32>, Vec<String>) {
        let (mut ids, mut unknown) = (Vec::new(), Vec::new());
        for token in self.0.tokens().cut_open(text) {
            let id = self.0.id(&token.name).or_else(|| {
                unknown.push(token.name.to_string());
                self.0.unk()
            });
            ids.extend(id);
        }
        (ids, unknown)
    }

    /// What ids spell.
    fn decode(&self, py: Python<'_>, ids: Vec<u32>) -> PyResult<Py<PyBytes>> {
        let (mut spelled, mut before) = (Vec::new(), None);
        for id in ids {
            if self.0.word(id).is_none() {
                return Err(PyValueError::new_err(format!(
                    "id {id}: must be below {}, the size of the vocabulary",
                    self.0.len()
                )));
            }
            spelled.extend(self.0.spelling(id, before));
            before = Some(id);
        }
        Ok(PyBytes::new(py, &spelled).unbind())
    }
}
