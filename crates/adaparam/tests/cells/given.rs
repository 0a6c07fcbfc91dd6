//! What a window of a cell is given and what it gives, as plain numbers under the names of the golden files.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};

use super::case::{Case, part_shape};
use super::equations::Named;
use super::tape::{Matrix, Tape, Value};

/// Numbers by name.
pub(crate) type Numbers = BTreeMap<String, Vec<f64>>;

/// `I, H, T, B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) input: usize,
    pub(crate) hidden: usize,
    pub(crate) steps: usize,
    pub(crate) batch: usize,
}

/// A window of a cell with all its parameters, and the gradient of a loss for its outputs.
pub(crate) struct Given {
    pub(crate) sizes: Sizes,
    /// `[T, B, I]`.
    pub(crate) input: Vec<f64>,
    /// `[T, B, H]`.
    pub(crate) cotangent: Vec<f64>,
    pub(crate) parameters: BTreeMap<String, Matrix>,
    /// By their letters.
    pub(crate) states: BTreeMap<String, Matrix>,
}

/// A golden file: its cell, what that is given, and what it is to give.
pub(crate) struct Golden {
    pub(crate) cell: String,
    pub(crate) given: Given,
    pub(crate) results: Numbers,
}

impl Golden {
    pub(crate) fn read(path: &Path) -> Self {
        let fault = |what: &str| -> ! { panic!("{}: {what}", path.display()) };
        let bytes = std::fs::read(path).unwrap_or_else(|error| fault(&error.to_string()));
        let file = SafeTensors::deserialize(&bytes);
        let file = file.unwrap_or_else(|error| fault(&error.to_string()));
        let (_, header) = SafeTensors::read_metadata(&bytes).expect("it was read just now");
        let cell = header.metadata().as_ref().and_then(|all| all.get("cell"));
        let cell = cell.unwrap_or_else(|| fault("its metadata have no cell"));
        let mut tensors: BTreeMap<String, (Vec<usize>, Vec<f64>)> = BTreeMap::new();
        for (name, view) in file.iter() {
            if view.dtype() != Dtype::F64 {
                fault(&format!("{name} is {:?}, not F64", view.dtype()));
            }
            let chunks = view.data().as_chunks::<8>().0.iter();
            let values = chunks.map(|chunk| f64::from_le_bytes(*chunk)).collect();
            tensors.insert(name.to_owned(), (view.shape().to_vec(), values));
        }
        let mut take = |name: &str| {
            let found = tensors.remove(name);
            found.unwrap_or_else(|| fault(&format!("there is no {name}")))
        };
        let (of_input, input) = take("input");
        let (of_output, cotangent) = take("cotangent");
        let (&[steps, batch, d_input], &[t, b, hidden]) = (&of_input[..], &of_output[..]) else {
            fault("input and cotangent must have three axes");
        };
        if [steps, batch] != [t, b] || input.is_empty() || cotangent.is_empty() {
            fault(&format!(
                "input is {of_input:?} and cotangent {of_output:?}: steps and batch must be the same, and no size 0"
            ));
        }
        let mut given = Given {
            sizes: Sizes {
                input: d_input,
                hidden,
                steps,
                batch,
            },
            input,
            cotangent,
            parameters: BTreeMap::new(),
            states: BTreeMap::new(),
        };
        let mut results = Numbers::new();
        for (name, (shape, values)) in tensors {
            if values.is_empty() {
                fault(&format!("{name} is {shape:?}: it must have numbers"));
            }
            let columns = shape.last().copied().unwrap_or(1);
            let matrix = || Matrix::new(values.len() / columns, columns, values.clone());
            if let Some(name) = name.strip_prefix("param.") {
                given.parameters.insert(name.to_owned(), matrix());
            } else if let Some(name) = name.strip_prefix("state.") {
                given.states.insert(name.to_owned(), matrix());
            } else {
                results.insert(name, values);
            }
        }
        Self {
            cell: cell.clone(),
            given,
            results,
        }
    }

    /// The case that the file is of.
    ///
    /// # Errors
    ///
    /// If there is no cell of its name, or the file lacks something that the cell is given.
    pub(crate) fn case(&self) -> Result<Case, String> {
        let found = Case::find(&self.cell, |name| self.given.parameters.contains_key(name));
        let case = found.ok_or_else(|| format!("no cell is called {}", self.cell))?;
        let sizes = self.given.sizes;
        let mut parameters = BTreeMap::new();
        for (path, shape) in case.shapes(sizes) {
            let names = case.names(&path);
            for name in names.iter().filter(|name| !name.starts_with('-')) {
                parameters.insert(name.clone(), part_shape(&shape, names.len()));
            }
        }
        let states = case.state_widths(sizes).into_iter();
        let states = states.map(|(letter, width)| (letter, [sizes.batch, width]));
        fits("param", &self.given.parameters, &parameters)?;
        fits("state", &self.given.states, &states.collect())?;
        Ok(case)
    }
}

/// Whether all expected matrices are there. There may be more: a file can have what its cell does not read.
fn fits(
    kind: &str,
    found: &BTreeMap<String, Matrix>,
    expected: &BTreeMap<String, [usize; 2]>,
) -> Result<(), String> {
    for (name, shape) in expected {
        let matrix = found.get(name);
        let matrix = matrix.ok_or_else(|| format!("there is no {kind}.{name}"))?;
        let is = [matrix.rows, matrix.columns];
        if is != *shape {
            return Err(format!("{kind}.{name} is {is:?} and must be {shape:?}"));
        }
    }
    Ok(())
}

impl Given {
    /// Numbers for a case that its sizes and a seed decide. No gate saturates.
    pub(crate) fn drawn(case: &Case, sizes: Sizes, seed: u64) -> Self {
        let mut numbers = Stream(seed);
        let Sizes {
            input,
            hidden,
            steps,
            batch,
        } = sizes;
        let mut parameters = BTreeMap::new();
        for (path, shape) in case.shapes(sizes) {
            let names = case.names(&path);
            let [rows, columns] = part_shape(&shape, names.len());
            for name in names.iter().filter(|name| !name.starts_with('-')) {
                let bound = match shape.len() {
                    1 => 0.5,
                    _ => 1.5 / (columns as f64).sqrt(),
                };
                parameters.insert(name.clone(), numbers.matrix(rows, columns, bound));
            }
        }
        let mut states = BTreeMap::new();
        for (letter, width) in case.state_widths(sizes) {
            let mut state = numbers.matrix(batch, width, 0.8);
            if letter == "n" {
                // A sum of exponentials is positive.
                state.values.iter_mut().for_each(|x| *x = x.abs() + 0.5);
            }
            states.insert(letter, state);
        }
        Self {
            sizes,
            input: numbers.matrix(steps * batch, input, 1.0).values,
            cotangent: numbers.matrix(steps * batch, hidden, 1.0).values,
            parameters,
            states,
        }
    }

    fn rows(&self, all: &[f64], t: usize, width: usize) -> Matrix {
        let len = self.sizes.batch * width;
        Matrix::new(
            self.sizes.batch,
            width,
            all[t * len..(t + 1) * len].to_vec(),
        )
    }

    /// Everything that the equations give, by the tape.
    pub(crate) fn by_the_tape(&self, case: &Case) -> Numbers {
        let tape = Tape::default();
        let of = |all: &BTreeMap<String, Matrix>| {
            let values = all.iter();
            values
                .map(|(name, matrix)| (name.clone(), tape.value(matrix.clone())))
                .collect::<BTreeMap<String, Value>>()
        };
        let first = of(&self.states);
        let named = Named {
            tape: tape.clone(),
            values: of(&self.parameters),
        };
        let mut states: Vec<Value> = case
            .letters()
            .iter()
            .map(|letter| first[*letter].clone())
            .collect();
        let (mut inputs, mut weighted, mut output) = (Vec::new(), Vec::new(), Vec::new());
        for t in 0..self.sizes.steps {
            let x = tape.value(self.rows(&self.input, t, self.sizes.input));
            states = (case.step)(&named, &x, &states);
            inputs.push(x);
            output.extend(&states[0].matrix().values);
            let cotangent = self.rows(&self.cotangent, t, self.sizes.hidden);
            weighted.push((states[0].clone(), cotangent));
        }
        let gradients = tape.gradients(&weighted);
        let mut results = Numbers::from([("output".to_owned(), output)]);
        for (letter, state) in case.letters().iter().zip(&states) {
            results.insert(format!("final.{letter}"), state.matrix().values.clone());
        }
        let of_inputs = inputs.iter().flat_map(|x| gradients.of(x).values.clone());
        results.insert("grad.input".to_owned(), of_inputs.collect());
        for (name, value) in &named.values {
            let gradient = gradients.of(value).values.clone();
            results.insert(format!("grad.param.{name}"), gradient);
        }
        for (letter, value) in &first {
            let gradient = gradients.of(value).values.clone();
            results.insert(format!("grad.state.{letter}"), gradient);
        }
        results
    }

    /// The numbers of which `grad.{name}` is the gradient.
    pub(crate) fn values_mut(&mut self, name: &str) -> &mut Vec<f64> {
        if name == "input" {
            return &mut self.input;
        }
        let found = match name.split_once('.') {
            Some(("param", name)) => self.parameters.get_mut(name),
            Some(("state", name)) => self.states.get_mut(name),
            _ => None,
        };
        let matrix = found.unwrap_or_else(|| panic!("there is no {name}"));
        &mut matrix.values
    }

    /// `Σ output ⊙ cotangent`.
    pub(crate) fn loss(&self, case: &Case) -> f64 {
        let output = &self.by_the_tape(case)["output"];
        let products = output.iter().zip(&self.cotangent).map(|(a, b)| a * b);
        products.sum()
    }
}

/// Numbers that a seed decides.
pub(crate) struct Stream(pub(crate) u64);

impl Stream {
    /// A number between -1 and 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    fn matrix(&mut self, rows: usize, columns: usize, bound: f64) -> Matrix {
        let values = (0..rows * columns).map(|_| bound * self.next()).collect();
        Matrix::new(rows, columns, values)
    }
}

/// Compares numbers by name; what is expected may be more only where it is all 0.
///
/// # Panics
///
/// Panics unless each number differs from the expected one by at most `tolerance` times the largest of its tensor, or of
/// `at_least`.
pub(crate) fn assert_agree(
    what: &str,
    ours: &Numbers,
    expected: &Numbers,
    tolerance: f64,
    at_least: f64,
) {
    let faults = faults(ours, expected, tolerance, |_| at_least);
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}

/// In what numbers are not those that are expected, where `at_least` tells by a tensor's name the least that its tolerance is
/// of.
pub(crate) fn faults(
    ours: &Numbers,
    expected: &Numbers,
    tolerance: f64,
    at_least: impl Fn(&str) -> f64,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, expected) in expected {
        let largest = largest(expected);
        let Some(ours) = ours.get(name) else {
            if largest > 0.0 {
                faults.push(format!("{name} is missing"));
            }
            continue;
        };
        if ours.len() != expected.len() {
            let (found, all) = (ours.len(), expected.len());
            faults.push(format!("{name} has {found} numbers, and must have {all}"));
            continue;
        }
        let differences = ours.iter().zip(expected).map(|(a, b)| (a - b).abs());
        // Not by `max`, which passes over what is not a number.
        let worst = differences.fold(0.0, |worst: f64, difference| {
            if difference <= worst {
                worst
            } else {
                difference
            }
        });
        let allowed = tolerance * largest.max(at_least(name));
        let holds = worst <= allowed;
        if !holds {
            faults.push(format!("{name} is off by {worst:e}, more than {allowed:e}"));
        }
    }
    for name in ours.keys() {
        if !expected.contains_key(name) {
            faults.push(format!("{name} is not expected"));
        }
    }
    faults
}

/// The largest of some numbers, whatever their sign.
pub(crate) fn largest(numbers: &[f64]) -> f64 {
    numbers.iter().fold(0.0, |most, x| most.max(x.abs()))
}
