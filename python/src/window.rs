//! Windows of recurrent stacks, forward and backward.

use adaparam_kernels::stack::{Keep, Mismatch, Operands, Seen, State, Weights};
use adaparam_kernels::{Engine, Precision};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::{detached, engine, precision};
use crate::numbers::{Numbers, multiplications};
use crate::packed::Packed;
use crate::runners::Owned;
use crate::stack::Stack;
use crate::tape::{self, Kept};

/// The owner of what waits for nobody.
const NOBODY: u64 = 0;

fn refused(mismatch: Mismatch) -> PyErr {
    PyValueError::new_err(mismatch.to_string())
}

/// What a window is computed from, as Python has it.
struct Window {
    engine: Arc<Engine>,
    weights: Vec<Numbers>,
    masks: Vec<Option<Numbers>>,
    lengths: Option<Vec<usize>>,
    steps: usize,
    batch: usize,
    x: Numbers,
    /// The initial state, by kinds; nothing for zeros.
    state: Vec<Numbers>,
}

impl Window {
    /// Hands the operands to `work`.
    ///
    /// # Safety
    /// All numbers are there while this runs, and nobody writes to them.
    unsafe fn with<R>(&self, work: impl FnOnce(&Operands<'_>) -> R) -> R {
        // SAFETY: the caller vouches for it, here and below.
        let weights = self.weights.iter().map(|of| unsafe { of.read() });
        let weights: Vec<&[f32]> = weights.collect();
        let masks = self.masks.iter();
        // SAFETY: as above.
        let masks = masks.map(|of| of.map(|of| unsafe { of.read() }));
        let masks: Vec<Option<&[f32]>> = masks.collect();
        work(&Operands {
            weights: &weights,
            masks: &masks,
            steps: self.steps,
            batch: self.batch,
            // SAFETY: as above.
            x: unsafe { self.x.read() },
            lengths: self.lengths.as_deref(),
        })
    }

    /// A runner with the window on its tape.
    ///
    /// # Safety
    /// As [`with`](Self::with).
    unsafe fn recorded(
        &self,
        stack: &Stack,
        owner: u64,
        state: &mut State,
        output: &mut [f32],
    ) -> Result<Owned, Mismatch> {
        let mut owned = Owned::take(owner, stack, Weights::Change, None);
        let engine = &*self.engine;
        // SAFETY: the caller vouches for it.
        let done = unsafe {
            self.with(|operands| {
                let runner = &mut owned.runner;
                runner.pack(engine, operands.weights)?;
                runner.forward(engine, operands, Keep::Tape, state, output)
            })
        };
        done.map(|()| owned)
    }
}

/// The numbers of a state by kinds, cut into the parts of layers; zeros if there are none. Errors name it `of`.
///
/// # Safety
/// The numbers are there, and nobody writes to them.
unsafe fn parts(of: &str, stack: &Stack, batch: usize, kinds: &[Numbers]) -> PyResult<State> {
    if kinds.is_empty() {
        let parts = stack
            .states
            .iter()
            .map(|of| vec![0.0; batch * of.numbers()]);
        return Ok(State {
            parts: parts.collect(),
        });
    }
    check_state(of, stack, batch, kinds)?;
    let parts = stack.places().map(|place| {
        // SAFETY: the caller vouches for it.
        let of_kind = unsafe { kinds[place.kind].read() };
        of_kind[batch * place.start..][..batch * place.width].to_vec()
    });
    Ok(State {
        parts: parts.collect(),
    })
}

/// Lays the parts of layers where their kinds are.
///
/// # Safety
/// The numbers are there, and nobody else uses them.
unsafe fn lay_down(stack: &Stack, batch: usize, state: &State, kinds: &[Numbers]) {
    for (place, part) in stack.places().zip(&state.parts) {
        // SAFETY: the caller vouches for it.
        let of_kind = unsafe { kinds[place.kind].write() };
        of_kind[batch * place.start..][..batch * place.width].copy_from_slice(part);
    }
}

fn check_state(of: &str, stack: &Stack, batch: usize, kinds: &[Numbers]) -> PyResult<()> {
    let widths = stack.widths();
    if kinds.len() != widths.len() {
        return Err(PyValueError::new_err(format!(
            "{of}: has {} parts, must have {}",
            kinds.len(),
            widths.len()
        )));
    }
    for (numbers, width) in kinds.iter().zip(widths) {
        numbers.must_be(of, batch * width)?;
    }
    Ok(())
}

/// Runs a window forward. Gives the capsule of its tape, if it is kept.
#[pyfunction]
#[pyo3(signature = (stack, owner, threads, precision_name, x, steps, batch, weights, versions, state, masks, lengths, output, finals, keep))]
pub(crate) fn forward(
    py: Python<'_>,
    stack: &Bound<'_, Stack>,
    owner: u64,
    threads: usize,
    precision_name: &str,
    x: Numbers,
    steps: usize,
    batch: usize,
    weights: Vec<Numbers>,
    versions: Vec<i64>,
    state: Vec<Numbers>,
    masks: Vec<Option<Numbers>>,
    lengths: Option<Vec<usize>>,
    output: Numbers,
    finals: Vec<Numbers>,
    keep: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let stack = stack.get();
    check_state("final state", stack, batch, &finals)?;
    let window = Window {
        engine: engine(
            threads,
            precision(precision_name)?,
            multiplications(&weights, steps * batch),
        ),
        weights,
        masks,
        lengths,
        steps,
        batch,
        x,
        state,
    };
    let packed = if keep {
        None
    } else {
        Packed::new(window.engine.path(), &window.weights, &versions)
    };
    // SAFETY: Python holds every tensor of the call until it returns, and `output` and `finals` are its own new ones.
    let recorded = detached(py, &window.engine, || unsafe {
        let mut carried = parts("state", stack, batch, &window.state)?;
        let output = output.write();
        let recorded = if keep {
            Some(
                window
                    .recorded(stack, owner, &mut carried, output)
                    .map_err(refused)?,
            )
        } else {
            read(&window, stack, owner, packed, &mut carried, output).map_err(refused)?;
            None
        };
        lay_down(stack, batch, &carried, &finals);
        Ok::<_, PyErr>(recorded)
    })?;
    recorded
        .map(|owned| tape::tensor(py, Kept::Window(owned)))
        .transpose()
}

/// Runs a window of which nothing is kept. Weights are packed anew only if they are not `packed`.
///
/// # Safety
/// As [`Window::with`].
unsafe fn read(
    window: &Window,
    stack: &Stack,
    owner: u64,
    packed: Option<Packed>,
    carried: &mut State,
    output: &mut [f32],
) -> Result<(), Mismatch> {
    let mut owned = Owned::take(owner, stack, Weights::Stay, packed.as_ref());
    let engine = &*window.engine;
    let is_packed = packed.is_some() && owned.packed == packed;
    // Should packing fail, what it leaves behind is nobody's.
    owned.packed = None;
    // SAFETY: the caller vouches for it.
    unsafe {
        window.with(|operands| {
            if !is_packed {
                owned.runner.pack(engine, operands.weights)?;
            }
            let runner = &mut owned.runner;
            runner.forward(engine, operands, Keep::State, carried, output)
        })?;
    }
    owned.packed = packed;
    owned.give_back();
    Ok(())
}

/// Runs a window backward, after computing it again if the tape is not there. Gradients of weights are wanted if `d_weights` has
/// places for them.
#[pyfunction]
#[pyo3(signature = (stack, owner, threads, precision_name, x, steps, batch, weights, state, masks, lengths, tape_address, d_output, d_finals, d_x, d_state, d_weights))]
pub(crate) fn backward(
    py: Python<'_>,
    stack: &Bound<'_, Stack>,
    owner: u64,
    threads: usize,
    precision_name: &str,
    x: Numbers,
    steps: usize,
    batch: usize,
    weights: Vec<Numbers>,
    state: Vec<Numbers>,
    masks: Vec<Option<Numbers>>,
    lengths: Option<Vec<usize>>,
    tape_address: usize,
    d_output: Numbers,
    d_finals: Vec<Numbers>,
    d_x: Numbers,
    d_state: Vec<Numbers>,
    d_weights: Vec<Numbers>,
) -> PyResult<()> {
    let stack = stack.get();
    check_state("gradient of the initial state", stack, batch, &d_state)?;
    let window = Window {
        engine: engine(
            threads,
            precision(precision_name)?,
            multiplications(&weights, steps * batch),
        ),
        weights,
        masks,
        lengths,
        steps,
        batch,
        x,
        state,
    };
    let kept = tape::take(tape_address);
    // SAFETY: Python holds every tensor of the call until it returns, and those that are written are its own new ones.
    detached(py, &window.engine, || unsafe {
        let mut owned = if let Some(Kept::Window(owned)) = kept {
            owned
        } else {
            let mut carried = parts("state", stack, batch, &window.state)?;
            let mut output = vec![0.0; d_output.len()];
            window
                .recorded(stack, owner, &mut carried, &mut output)
                .map_err(refused)?
        };
        let mut d_carried = parts("gradient of the final state", stack, batch, &d_finals)?;
        let is_wanted = !d_weights.is_empty();
        let mut unwanted: Vec<Vec<f32>> = Vec::new();
        let mut gradients: Vec<&mut [f32]> = if is_wanted {
            d_weights.iter().map(|of| of.write()).collect()
        } else {
            unwanted.extend(
                stack
                    .parameters
                    .iter()
                    .map(|slot| vec![0.0; slot.numbers()]),
            );
            unwanted.iter_mut().map(Vec::as_mut_slice).collect()
        };
        let engine = &*window.engine;
        let done = window.with(|operands| {
            let (d_output, d_x) = (d_output.read(), d_x.write());
            let runner = &mut owned.runner;
            runner.through_time(
                engine,
                operands,
                d_output,
                &mut d_carried,
                d_x,
                &mut gradients,
            )?;
            if is_wanted {
                runner.weight_gradients(engine, operands, &mut gradients)?;
            }
            Ok(())
        });
        done.map_err(refused)?;
        lay_down(stack, batch, &d_carried, &d_state);
        owned.give_back();
        Ok(())
    })
}

/// What a stack computes at every step: name, width and numbers `[steps, batch, width]` of each thing. See `Runner::inspect`.
#[pyfunction]
pub(crate) fn inspect(
    py: Python<'_>,
    stack: &Bound<'_, Stack>,
    threads: usize,
    x: Numbers,
    steps: usize,
    batch: usize,
    weights: Vec<Numbers>,
    state: Vec<Numbers>,
) -> PyResult<Vec<(String, usize, Py<PyByteArray>)>> {
    let stack = stack.get();
    let window = Window {
        engine: engine(
            threads,
            Precision::F32,
            multiplications(&weights, steps * batch),
        ),
        weights,
        masks: Vec::new(),
        lengths: None,
        steps,
        batch,
        x,
        state,
    };
    // SAFETY: Python holds every tensor of the call until it returns.
    let seen = detached(py, &window.engine, || unsafe {
        let mut carried = parts("state", stack, batch, &window.state)?;
        let mut output = vec![0.0; steps * batch * stack.kernels.d_output()];
        let owned = window
            .recorded(stack, NOBODY, &mut carried, &mut output)
            .map_err(refused)?;
        let mut seen: BTreeMap<String, (usize, Vec<u8>)> = BTreeMap::new();
        let mut see = |one: Seen<'_>| {
            let entry = seen.entry(one.name.to_owned());
            let (_, bytes) = entry.or_insert_with(|| (one.width, Vec::new()));
            bytes.extend(one.values.iter().flat_map(|x| x.to_ne_bytes()));
        };
        owned.runner.inspect(&mut see).map_err(refused)?;
        Ok::<_, PyErr>(seen)
    })?;
    let seen = seen.into_iter();
    Ok(seen
        .map(|(name, (width, bytes))| (name, width, PyByteArray::new(py, &bytes).unbind()))
        .collect())
}
