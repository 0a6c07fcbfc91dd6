//! Who computes what of a step.
//!
//! Either all threads share the columns of every step, and wait for each other several times a step; or each has some rows of the
//! batch for the whole window, and waits for nobody. The first reads each weight once a step, the second once a step for each
//! thread: it is for stacks that are small enough to stay in cache.

use super::pass::Pass;
use crate::Engine;
use crate::gemm::Phase;
use crate::threads::Pool;
use std::ops::Range;

/// Most rows that are never divided: sums over the batch are sums over groups of them, whoever computes those.
const GROUP_ROWS: usize = 5;

/// Some rows of a batch.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) first: usize,
    pub(super) count: usize,
}

/// The groups of rows that are never divided.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    batch: usize,
}

impl Groups {
    pub(super) fn of(batch: usize) -> Self {
        Self { batch }
    }

    pub(super) fn count(self) -> usize {
        self.batch.div_ceil(GROUP_ROWS)
    }

    /// The rows of neighbouring groups.
    pub(super) fn rows(self, groups: Range<usize>) -> Rows {
        let start = |group: usize| self.batch * group / self.count();
        Rows {
            first: start(groups.start),
            count: start(groups.end) - start(groups.start),
        }
    }
}

/// Threads that compute steps together.
#[derive(Clone, Copy)]
pub(super) enum Team<'a> {
    /// All of them.
    All(&'a Pool),
    /// The one of this number, while others do the same for other rows.
    One(usize),
}

impl Team<'_> {
    /// Calls `task(number, thread)` once for every `number` below `tasks`. No task changes what another one multiplies.
    pub(super) fn run(&self, tasks: usize, task: impl Fn(usize, usize) + Sync) {
        let phase = Phase::begin();
        let task = |number: usize, thread: usize| phase.run(|| task(number, thread));
        match *self {
            Self::All(pool) => pool.run(tasks, task),
            Self::One(thread) => (0..tasks).for_each(|number| task(number, thread)),
        }
    }
}

impl Pass<'_> {
    /// Calls `work` for teams of threads and their groups of rows.
    pub(super) fn divide(&self, engine: &Engine, work: impl Fn(Team<'_>, Range<usize>) + Sync) {
        let (pool, groups) = (engine.pool(), Groups::of(self.batch()).count());
        let teams = pool.threads().min(groups);
        if self.plan.small && teams > 1 {
            pool.run(teams, |team, thread| {
                let groups = groups * team / teams..groups * (team + 1) / teams;
                work(Team::One(thread), groups);
            });
        } else {
            work(Team::All(pool), 0..groups);
        }
    }
}
