//! The calls of MPI that are used, on slices.
//!
//! None returns an error: MPI ends all processes when a call fails, unless it is told otherwise.

// A binding: each block has its argument.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::time::Duration;

use mpi_sys as ffi;

/// Room for the longest name of a machine that an MPI library gives.
const LONGEST_NAME: usize = 1024;

/// The right to call MPI: it has been joined and not been left, and one thread at a time borrows this for a call.
pub(crate) struct World(());

/// Numbers that MPI knows.
pub(crate) trait Number: Copy {
    /// MPI's name for it.
    fn kind() -> ffi::MPI_Datatype;
}

impl Number for u8 {
    fn kind() -> ffi::MPI_Datatype {
        // SAFETY: a constant of the library.
        unsafe { ffi::RSMPI_UINT8_T }
    }
}

impl Number for u64 {
    fn kind() -> ffi::MPI_Datatype {
        // SAFETY: a constant of the library.
        unsafe { ffi::RSMPI_UINT64_T }
    }
}

impl Number for f32 {
    fn kind() -> ffi::MPI_Datatype {
        // SAFETY: a constant of the library.
        unsafe { ffi::RSMPI_FLOAT }
    }
}

fn world() -> ffi::MPI_Comm {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_COMM_WORLD }
}

/// As MPI counts.
fn count(numbers: usize) -> c_int {
    c_int::try_from(numbers).expect("at most two thousand million numbers at a time")
}

/// Counts of pieces that lie one after the other, and where each begins.
struct Pieces {
    counts: Vec<c_int>,
    starts: Vec<c_int>,
    total: usize,
}

impl Pieces {
    fn of(lengths: &[usize]) -> Self {
        let mut total = 0;
        let (counts, starts) = lengths
            .iter()
            .map(|&length| {
                let piece = (count(length), count(total));
                total += length;
                piece
            })
            .unzip();
        Self {
            counts,
            starts,
            total,
        }
    }
}

/// Ends all processes at once with this exit code, whatever they are at. For every end that is not agreed on: a rank that just
/// ends, or panics, would leave the others waiting for it.
pub fn abort(code: i32) -> ! {
    // SAFETY: the only call that may come while another thread is in one; nothing is used after it.
    unsafe { ffi::MPI_Abort(world(), code) };
    std::process::abort()
}

#[expect(
    clippy::unused_self,
    reason = "whoever has it may call, and whoever borrows it is alone"
)]
impl World {
    /// Joins MPI; nothing if it was joined before, or allows no calls from different threads in turn.
    pub(crate) fn join() -> Option<Self> {
        let (mut before, mut given) = (0, 0);
        // SAFETY: may be called at any time; the pointer is to a number.
        unsafe { ffi::MPI_Initialized(&raw mut before) };
        if before != 0 {
            return None;
        }
        // SAFETY: MPI has not been joined; it takes no arguments of the command line, and the last pointer is to a number.
        let wanted = unsafe {
            ffi::MPI_Init_thread(
                ptr::null_mut(),
                ptr::null_mut(),
                ffi::RSMPI_THREAD_SERIALIZED,
                &raw mut given,
            );
            ffi::RSMPI_THREAD_SERIALIZED
        };
        (given >= wanted).then_some(Self(()))
    }

    pub(crate) fn rank(&self) -> usize {
        let mut rank = 0;
        // SAFETY: MPI has been joined; the pointer is to a number.
        unsafe { ffi::MPI_Comm_rank(world(), &raw mut rank) };
        rank as usize
    }

    pub(crate) fn ranks(&self) -> usize {
        let mut ranks = 0;
        // SAFETY: as above.
        unsafe { ffi::MPI_Comm_size(world(), &raw mut ranks) };
        ranks as usize
    }

    /// How many of the processes share this machine's memory.
    pub(crate) fn neighbours(&mut self) -> usize {
        let mut neighbours = 0;
        // SAFETY: every process makes this call after joining; the communicator is made, asked and freed here.
        unsafe {
            let mut here = ffi::RSMPI_COMM_NULL;
            ffi::MPI_Comm_split_type(
                world(),
                ffi::RSMPI_COMM_TYPE_SHARED,
                0,
                ffi::RSMPI_INFO_NULL,
                &raw mut here,
            );
            ffi::MPI_Comm_size(here, &raw mut neighbours);
            ffi::MPI_Comm_free(&raw mut here);
        }
        neighbours as usize
    }

    /// The name of this machine.
    pub(crate) fn host(&self) -> String {
        let mut name = [0_u8; LONGEST_NAME];
        let mut length = 0;
        // SAFETY: the room is larger than the longest name of OpenMPI and MPICH, 256 bytes.
        unsafe {
            ffi::MPI_Get_processor_name(name.as_mut_ptr().cast::<c_char>(), &raw mut length);
        }
        String::from_utf8_lossy(&name[..(length as usize).min(LONGEST_NAME)]).into_owned()
    }

    /// What every process gives, `lengths` numbers each, one after the other.
    pub(crate) fn all_gather<T: Number>(&mut self, own: &[T], all: &mut [T], lengths: &[usize]) {
        let pieces = Pieces::of(lengths);
        assert_eq!(own.len(), lengths[self.rank()], "numbers that are given");
        assert_eq!(all.len(), pieces.total, "room for what all give");
        // SAFETY: both slices are as long as their counts say and do not overlap; counts are the same at every process.
        unsafe {
            ffi::MPI_Allgatherv(
                own.as_ptr().cast::<c_void>(),
                count(own.len()),
                T::kind(),
                all.as_mut_ptr().cast::<c_void>(),
                pieces.counts.as_ptr(),
                pieces.starts.as_ptr(),
                T::kind(),
                world(),
            );
        }
    }

    /// Gives each process its piece of `outgoing`, and receives from each what it has for this one.
    pub(crate) fn all_to_all<T: Number>(
        &mut self,
        outgoing: &[T],
        sent: &[usize],
        incoming: &mut [T],
        received: &[usize],
    ) {
        let (out, into) = (Pieces::of(sent), Pieces::of(received));
        assert_eq!(outgoing.len(), out.total, "numbers that are given");
        assert_eq!(incoming.len(), into.total, "room for what is received");
        // SAFETY: both slices are as long as their counts say and do not overlap; what one sends another expects.
        unsafe {
            ffi::MPI_Alltoallv(
                outgoing.as_ptr().cast::<c_void>(),
                out.counts.as_ptr(),
                out.starts.as_ptr(),
                T::kind(),
                incoming.as_mut_ptr().cast::<c_void>(),
                into.counts.as_ptr(),
                into.starts.as_ptr(),
                T::kind(),
                world(),
            );
        }
    }

    /// Gives everybody what the first process has in `content`, which is as long everywhere.
    pub(crate) fn broadcast<T: Number>(&mut self, content: &mut [T]) {
        // SAFETY: the slice is as long as is said.
        unsafe {
            ffi::MPI_Bcast(
                content.as_mut_ptr().cast::<c_void>(),
                count(content.len()),
                T::kind(),
                0,
                world(),
            );
        }
    }

    /// Waits until all processes are here, and sleeps between looks.
    pub(crate) fn wait_for_all(&mut self, look_every: Duration) {
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the request is asked for until it is done, which frees it.
        unsafe { ffi::MPI_Ibarrier(world(), &raw mut request) };
        loop {
            let mut is_done = 0;
            // SAFETY: as above; the status is not wanted.
            unsafe { ffi::MPI_Test(&raw mut request, &raw mut is_done, ffi::RSMPI_STATUS_IGNORE) };
            if is_done != 0 {
                return;
            }
            std::thread::sleep(look_every);
        }
    }

    /// Leaves MPI, once all processes do.
    pub(crate) fn leave(self) {
        // SAFETY: no call follows, because this is consumed and cannot be made again.
        unsafe { ffi::MPI_Finalize() };
    }
}
