//! A team of threads, for tests.

use std::sync::{Arc, Barrier, Mutex};

use super::{Team, Traffic};

/// One rank of a team of threads in this process.
pub(super) struct ThreadRank {
    rank: usize,
    table: Arc<Table>,
}

struct Table {
    meeting: Barrier,
    /// What every rank has laid down.
    laid: Mutex<Vec<Vec<u8>>>,
}

/// Runs `work` as so many ranks at once; what each of them came to.
pub(super) fn run<T: Send>(ranks: usize, work: impl Fn(&dyn Team) -> T + Sync) -> Vec<T> {
    let table = Arc::new(Table {
        meeting: Barrier::new(ranks),
        laid: Mutex::new(vec![Vec::new(); ranks]),
    });
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                let own = ThreadRank {
                    rank,
                    table: Arc::clone(&table),
                };
                let work = &work;
                scope.spawn(move || work(&own))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

impl Team for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.table.laid.lock().unwrap().len()
    }

    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.table.laid.lock().unwrap()[self.rank] = own.to_vec();
        self.table.meeting.wait();
        let all = self.table.laid.lock().unwrap().clone();
        self.table.meeting.wait();
        all
    }

    fn of_first(&self, own: Vec<u8>) -> Vec<u8> {
        self.gather(&own).swap_remove(0)
    }

    fn exchange(&self, outgoing: &[f32], sent: &[usize], incoming: &mut [f32], received: &[usize]) {
        assert_eq!(outgoing.len(), sent.iter().sum::<usize>());
        let mut message: Vec<u8> = sent
            .iter()
            .flat_map(|n| (*n as u64).to_le_bytes())
            .collect();
        message.extend(bytes(outgoing));
        let mut filled = 0;
        for (said, &length) in self.gather(&message).iter().zip(received) {
            let (counts, numbers) = said.split_at(8 * self.ranks());
            let (counts, _) = counts.as_chunks::<8>();
            let counts: Vec<usize> = counts
                .iter()
                .map(|n| u64::from_le_bytes(*n) as usize)
                .collect();
            assert_eq!(counts[self.rank], length);
            let start: usize = counts[..self.rank].iter().sum();
            let numbers = super::share::numbers(numbers);
            incoming[filled..filled + length].copy_from_slice(&numbers[start..start + length]);
            filled += length;
        }
        assert_eq!(filled, incoming.len());
    }

    fn spread(&self, own: &[f32], all: &mut [f32], lengths: &[usize]) {
        assert_eq!(own.len(), lengths[self.rank]);
        let numbers = super::share::numbers(&self.gather(&bytes(own)).concat());
        all.copy_from_slice(&numbers);
    }

    fn wait_for_all(&self) {
        self.table.meeting.wait();
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}
