//! What a forward pass keeps for its backward pass, as a tensor.
//!
//! An operation gives tensors only. So a tape is a tensor of one zero, whose memory is ours: whoever keeps the tensor keeps the pass, and
//! when its memory is freed, by whatever thread, what has computed it goes back. Where the tensor was copied the copy has another
//! address, and nothing is known about it; then the backward pass computes the forward pass again.

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::rows::OwnedRows;
use crate::runners::Owned;

/// What has a forward pass on its tape.
pub(crate) enum Kept {
    /// A window of a recurrent stack.
    Window(Owned),
    /// Rows of a feed-forward layer.
    Rows(Box<OwnedRows>),
}

impl Kept {
    fn give_back(self) {
        match self {
            Self::Window(owned) => owned.give_back(),
            Self::Rows(owned) => owned.give_back(),
        }
    }
}

/// By the address of their tape.
static KEPT: LazyLock<Mutex<HashMap<usize, Kept>>> = LazyLock::new(Mutex::default);

fn kept() -> MutexGuard<'static, HashMap<usize, Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What has its tape at this address, if nobody has taken it yet.
pub(crate) fn take(address: usize) -> Option<Kept> {
    kept().remove(&address)
}

/// How many forward passes are kept for their backward passes.
#[pyfunction]
pub(crate) fn kept_passes() -> usize {
    kept().len()
}

/// The C structure by which libraries hand each other tensors: `DLPack`, version 0.
#[repr(C)]
struct ManagedTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    type_code: u8,
    type_bits: u8,
    type_lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

const CPU: i32 = 1;
const UNSIGNED: u8 = 1;
const NAME: &CStr = c"dltensor";

/// A tape and the tensor that shows it.
struct Tape {
    tensor: ManagedTensor,
    shape: [i64; 1],
    /// What the tensor holds.
    zero: u8,
}

/// A capsule for `torch.from_dlpack` that keeps a forward pass.
pub(crate) fn tensor(py: Python<'_>, pass: Kept) -> PyResult<Py<PyAny>> {
    let tape = Box::into_raw(Box::new(Tape {
        tensor: ManagedTensor {
            data: std::ptr::null_mut(),
            device_type: CPU,
            device_id: 0,
            dimensions: 1,
            type_code: UNSIGNED,
            type_bits: 8,
            type_lanes: 1,
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
            manager: std::ptr::null_mut(),
            deleter: Some(delete),
        },
        shape: [1],
        zero: 0,
    }));
    // SAFETY: the box was just made, and is ours until the capsule has it.
    let managed = unsafe {
        let of = &mut *tape;
        of.tensor.data = (&raw mut of.zero).cast();
        of.tensor.shape = (&raw mut of.shape).cast();
        of.tensor.manager = tape.cast();
        kept().insert((&raw const of.zero).addr(), pass);
        &raw mut of.tensor
    };
    // SAFETY: the name is static, and the destructor is for capsules of this name.
    let capsule = unsafe { ffi::PyCapsule_New(managed.cast(), NAME.as_ptr(), Some(unused)) };
    if capsule.is_null() {
        // SAFETY: nobody else has it.
        unsafe { delete(managed) };
        return Err(PyRuntimeError::new_err("no capsule for a tape"));
    }
    // SAFETY: the capsule is a new object that we own.
    Ok(unsafe { Bound::from_owned_ptr(py, capsule) }.unbind())
}

/// Called when the last tensor of a tape goes, by any thread.
unsafe extern "C" fn delete(managed: *mut ManagedTensor) {
    // SAFETY: `manager` is the box that `tensor` made, and this is called once.
    let tape = unsafe { Box::from_raw((*managed).manager.cast::<Tape>()) };
    let pass = take((&raw const tape.zero).addr());
    drop(tape);
    if let Some(pass) = pass {
        pass.give_back();
    }
}

/// Called when a capsule goes. Who makes a tensor of it gives it another name, and the tensor is deleted by itself.
unsafe extern "C" fn unused(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with a capsule of ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr());
            delete(managed.cast());
        }
    }
}
