use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use adaparam_lm::{Team, Traffic};

use crate::calls::World;

/// How often a rank that waits looks whether the others are there.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Bytes that are sent at once: MPI counts in 32 bits.
const AT_ONCE: usize = 1 << 30;

/// The processes that `mpirun` or a scheduler has started together.
pub struct MpiTeam {
    rank: usize,
    ranks: usize,
    host: String,
    neighbours: usize,
    /// None once this process has left.
    world: Mutex<Option<World>>,
    traffic: Mutex<Traffic>,
}

impl MpiTeam {
    /// Joins the others; nothing if MPI has been joined before, or allows no calls from different threads in turn.
    pub fn join() -> Option<Self> {
        let mut world = World::join()?;
        Some(Self {
            rank: world.rank(),
            ranks: world.ranks(),
            host: world.host(),
            neighbours: world.neighbours(),
            world: Mutex::new(Some(world)),
            traffic: Mutex::default(),
        })
    }

    /// The name of this machine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Ranks on this machine, this one included.
    pub fn neighbours(&self) -> usize {
        self.neighbours
    }

    /// Leaves, once all others do. Nothing may be sent or received afterwards.
    pub fn leave(&self) {
        let world = self.world().take();
        if let Some(world) = world {
            world.leave();
        }
    }

    fn world(&self) -> MutexGuard<'_, Option<World>> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Comes together with the others, and counts the time, and the bytes `sent` to them and `received`.
    fn meet<T>(&self, sent: usize, received: usize, work: impl FnOnce(&mut World) -> T) -> T {
        let started = Instant::now();
        let result = work(self.world().as_mut().expect("this rank has not left"));
        let mut traffic = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        traffic.time += started.elapsed();
        traffic.sent += sent as u64;
        traffic.received += received as u64;
        result
    }
}

impl Team for MpiTeam {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let mut lengths = vec![0_u64; self.ranks];
        self.meet(0, 0, |world| {
            let ones = vec![1; self.ranks];
            world.all_gather(&[own.len() as u64], &mut lengths, &ones);
        });
        let lengths: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
        let total: usize = lengths.iter().sum();
        let mut all = vec![0_u8; total];
        let others = self.ranks - 1;
        self.meet(own.len() * others, total - own.len(), |world| {
            world.all_gather(own, &mut all, &lengths);
        });
        let mut rest = &all[..];
        let cut = lengths.into_iter().map(|length| {
            let (own, after) = rest.split_at(length);
            rest = after;
            own.to_vec()
        });
        cut.collect()
    }

    fn of_first(&self, own: Vec<u8>) -> Vec<u8> {
        let is_first = self.rank == 0;
        let mut length = [own.len() as u64];
        self.meet(0, 0, |world| world.broadcast(&mut length));
        let mut content = if is_first {
            own
        } else {
            vec![0; length[0] as usize]
        };
        let bytes = content.len();
        let (sent, received) = if is_first {
            (bytes * (self.ranks - 1), 0)
        } else {
            (0, bytes)
        };
        self.meet(sent, received, |world| {
            for piece in content.chunks_mut(AT_ONCE) {
                world.broadcast(piece);
            }
        });
        content
    }

    fn exchange(&self, outgoing: &[f32], sent: &[usize], incoming: &mut [f32], received: &[usize]) {
        let to_others = outgoing.len() - sent[self.rank];
        let from_others = incoming.len() - received[self.rank];
        self.meet(4 * to_others, 4 * from_others, |world| {
            world.all_to_all(outgoing, sent, incoming, received);
        });
    }

    fn spread(&self, own: &[f32], all: &mut [f32], lengths: &[usize]) {
        let to_others = own.len() * (self.ranks - 1);
        let from_others = all.len() - own.len();
        self.meet(4 * to_others, 4 * from_others, |world| {
            world.all_gather(own, all, lengths);
        });
    }

    fn wait_for_all(&self) {
        self.meet(0, 0, |world| world.wait_for_all(LOOK_EVERY));
    }

    fn traffic(&self) -> Traffic {
        *self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
