//! The parameters of a model as plain numbers: what is trained, saved and sent about.

/// One parameter of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    /// Its name in files, such as `rnns.alstm_layers.0.weight_ih`.
    pub name: String,
    /// Its shape, as the layers have it.
    pub shape: Vec<usize>,
    /// Its form in files.
    pub storage: Storage,
    /// Its numbers, row after row.
    pub values: Vec<f32>,
}

/// How a parameter lies in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// As it does here.
    AsIs,
    /// A linear map that is `[in, out]` here and `[out, in]` there, as PyTorch has it.
    Transposed,
}

/// A parameter without its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterShape {
    /// Its name in files.
    pub name: String,
    /// Its shape, as the layers have it.
    pub shape: Vec<usize>,
    /// Its form in files.
    pub storage: Storage,
}

impl ParameterShape {
    /// How many numbers it has; as many as fit, should there be more.
    pub fn count(&self) -> usize {
        let product = |count: usize, &length: &usize| count.saturating_mul(length);
        self.shape.iter().fold(1, product)
    }

    /// Its shape in files.
    pub(crate) fn stored_shape(&self) -> Vec<usize> {
        match self.storage {
            Storage::AsIs => self.shape.clone(),
            Storage::Transposed => self.shape.iter().rev().copied().collect(),
        }
    }

    /// `values` of this parameter, or of something of its shape, in the order of files.
    pub fn to_stored(&self, values: &[f32]) -> Vec<f32> {
        match (self.storage, self.shape.as_slice()) {
            (Storage::Transposed, &[rows, columns]) => transpose(values, [rows, columns]),
            _ => values.to_vec(),
        }
    }

    /// What [`to_stored`](Self::to_stored) was given.
    pub fn from_stored(&self, values: Vec<f32>) -> Vec<f32> {
        match (self.storage, self.shape.as_slice()) {
            (Storage::Transposed, &[rows, columns]) => transpose(&values, [columns, rows]),
            _ => values,
        }
    }

    /// The parameter with these numbers.
    ///
    /// # Panics
    ///
    /// Panics if there are more or fewer than its shape says.
    pub fn with(self, values: Vec<f32>) -> Weight {
        assert_eq!(values.len(), self.count(), "numbers of {}", self.name);
        Weight {
            name: self.name,
            shape: self.shape,
            storage: self.storage,
            values,
        }
    }
}

impl Weight {
    /// The same without its numbers.
    pub(crate) fn without_values(&self) -> ParameterShape {
        ParameterShape {
            name: self.name.clone(),
            shape: self.shape.clone(),
            storage: self.storage,
        }
    }
}

/// Every parameter of a model, in a fixed order: the word vectors, those of the head, those of the layers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weights(Vec<Weight>);

impl Weights {
    /// These parameters.
    pub fn new(all: Vec<Weight>) -> Self {
        Self(all)
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::Iter<'_, Weight> {
        self.0.iter()
    }

    /// One after the other, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Weight> {
        self.0.iter_mut()
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many numbers they have together.
    pub fn numbers(&self) -> usize {
        self.0.iter().map(|weight| weight.values.len()).sum()
    }

    /// The numbers of each.
    pub fn slices(&self) -> Vec<&[f32]> {
        self.0
            .iter()
            .map(|weight| weight.values.as_slice())
            .collect()
    }

    /// The same parameters with other numbers.
    ///
    /// # Panics
    ///
    /// Panics if there are more or fewer of them.
    #[must_use]
    pub(crate) fn with_values(&self, values: &[Vec<f32>]) -> Self {
        let pairs = self.0.iter().zip(values);
        Self(
            pairs
                .map(|(weight, values)| weight.without_values().with(values.clone()))
                .collect(),
        )
    }
}

impl<'a> IntoIterator for &'a Weights {
    type Item = &'a Weight;
    type IntoIter = std::slice::Iter<'a, Weight>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Weights {
    type Item = &'a mut Weight;
    type IntoIter = std::slice::IterMut<'a, Weight>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// A matrix of `rows × columns`, row after row, as its transpose.
fn transpose(values: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    /// Blocks of this side stay in the processor's cache.
    const SIDE: usize = 32;
    let mut result = vec![0.0; values.len()];
    for row_block in (0..rows).step_by(SIDE) {
        for column_block in (0..columns).step_by(SIDE) {
            for row in row_block..rows.min(row_block + SIDE) {
                for column in column_block..columns.min(column_block + SIDE) {
                    result[column * rows + row] = values[row * columns + column];
                }
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transpose_swaps_rows_and_columns_and_is_undone_by_another() {
        let values: Vec<f32> = (0..35 * 70).map(|i| i as f32).collect();
        let shape = ParameterShape {
            name: "w".to_owned(),
            shape: vec![35, 70],
            storage: Storage::Transposed,
        };
        let stored = shape.to_stored(&values);
        assert_eq!(shape.stored_shape(), [70, 35]);
        assert_eq!(stored[1].to_bits(), values[70].to_bits());
        assert_eq!(shape.from_stored(stored), values);
    }
}
