//! The threads of PyTorch.
//!
//! PyTorch computes on threads of OpenMP, which look for further work for some milliseconds after each operation. A second set of
//! threads would meet them on every core: the operations right before a window, such as the sum of a loss, cost the window a
//! third of its time. So windows run on the same threads, as PyTorch's own layers do.

use std::ffi::{c_uint, c_void};
use std::thread::{self, ThreadId};

/// Calls a function with an argument on so many threads, the caller's included, and returns when all calls have. Has flags as well.
type Parallel =
    unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, c_uint, c_uint);

/// The OpenMP of this process: GNU's, or another that has its entries.
#[derive(Clone, Copy)]
pub(crate) struct OpenMp(Parallel);

impl OpenMp {
    /// That which PyTorch has brought along, if it is one that we know.
    pub(crate) fn find() -> Option<Self> {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: a look into the table of symbols, under a name that ends with a zero.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"GOMP_parallel".as_ptr()) };
            if !found.is_null() {
                // SAFETY: compilers have called the function of this name with these arguments since GCC 4.9.
                return Some(Self(unsafe {
                    std::mem::transmute::<*mut c_void, Parallel>(found)
                }));
            }
        }
        None
    }

    /// Calls `work` here and `help` on the other ones of `threads` threads, or on as many as there are.
    pub(crate) fn lend(self, threads: usize, work: &mut dyn FnMut(), help: &(dyn Fn() + Sync)) {
        let mut team = Team {
            caller: thread::current().id(),
            work,
            help,
        };
        // SAFETY: the function is given the team that it expects, which lives until all calls have returned.
        unsafe { (self.0)(member, (&raw mut team).cast(), threads as c_uint, 0) };
    }
}

struct Team<'a> {
    caller: ThreadId,
    work: *mut (dyn FnMut() + 'a),
    help: &'a (dyn Fn() + Sync),
}

/// What every thread of a team does.
unsafe extern "C" fn member(team: *mut c_void) {
    let team = team.cast::<Team<'_>>().cast_const();
    // SAFETY: `lend` gives its own team, which nobody changes; what may be called from one thread only is called by the one that
    // gave it, once.
    unsafe {
        if thread::current().id() == (*team).caller {
            (*(*team).work)();
        } else {
            ((*team).help)();
        }
    }
}
