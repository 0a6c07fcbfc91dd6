//! What a runner says of its memory is what it holds. Alone in its file, because it counts what all threads allocate.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{self, Adaptation, Latent, PolicyLayout, PolicyStart, Summary};
use adaparam_kernels::lstm;
use adaparam_kernels::stack::{Keep, Stack, Weights};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::stack::{Case, Summed};
use support::start_threads;

/// The system's allocator, with a count of the bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all work is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn stacks() -> Vec<Box<dyn Stack>> {
    let adaptive = |kind, summary, adaptation, layout, bias| alstm::Shape {
        input: 33,
        hidden: vec![70, 21, 50],
        latent: 19,
        kind,
        summary,
        adaptation,
        layout,
        start: PolicyStart::Paper,
        bias,
        skip: false,
    };
    let (paper, released) = (PolicyLayout::Paper, PolicyLayout::Released);
    vec![
        Box::new(adaptive(
            Latent::Recurrent,
            Summary::Hybrid,
            Adaptation::InputOutput,
            paper,
            true,
        )),
        Box::new(adaptive(
            Latent::Static,
            Summary::Own,
            Adaptation::Output,
            released,
            false,
        )),
        Box::new(adaptive(
            Latent::Static,
            Summary::Hybrid,
            Adaptation::Input,
            released,
            true,
        )),
        Box::new(lstm::Shape {
            input: 33,
            hidden: vec![70, 21, 50],
            bias: true,
            skip: false,
            input_gate: lstm::InputGate::Free,
        }),
        Box::new(lstm::Shape {
            input: 33,
            hidden: vec![33, 33, 33],
            bias: true,
            skip: true,
            input_gate: lstm::InputGate::Free,
        }),
        Summed {
            input: 33,
            width: 70,
            layers: 3,
            output: 50,
            bias: true,
            input_gate: lstm::InputGate::Capped,
        }
        .stack(),
        Summed {
            input: 7,
            width: 6,
            layers: 2,
            output: 19,
            bias: false,
            input_gate: lstm::InputGate::Tied,
        }
        .stack(),
        Box::new(alstm::Shape {
            hidden: vec![33, 33, 50],
            skip: true,
            ..adaptive(
                Latent::Recurrent,
                Summary::Hybrid,
                Adaptation::InputOutput,
                paper,
                true,
            )
        }),
    ]
}

/// The bytes that a new runner holds after two windows of this size, and those that it says.
fn held_and_said(
    stack: &dyn Stack,
    engine: &Engine,
    weights: Weights,
    keep: Keep,
    [steps, batch]: [usize; 2],
) -> [usize; 2] {
    let case = Case::new(stack, steps, batch, true, 3);
    let before = IN_USE.load(Ordering::SeqCst);
    let mut runner = stack.runner(weights);
    for _ in 0..2 {
        if keep == Keep::Tape {
            case.learn(&mut *runner, engine);
        } else {
            case.with_operands(|operands| runner.pack(engine, operands.weights))
                .unwrap();
            case.forward(&mut *runner, engine, keep);
        }
    }
    let held = IN_USE.load(Ordering::SeqCst) - before;
    [held, runner.bytes(engine, keep, steps, batch)]
}

/// Waits until nobody else allocates: the thread that started this test may still write down that it did.
fn wait_for_others() {
    let mut before = None;
    while before != Some(IN_USE.load(Ordering::SeqCst)) {
        before = Some(IN_USE.load(Ordering::SeqCst));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_runner_holds_the_bytes_that_it_says() {
    // Besides the numbers there are lists of columns, names and the like, as many for every size of a window.
    const OTHERS: usize = 40_000;
    wait_for_others();
    for stack in stacks() {
        for threads in [1, 3] {
            let engine = Engine::new(threads);
            start_threads(&engine);
            for (weights, keep) in [
                (Weights::Change, Keep::Tape),
                (Weights::Stay, Keep::Tape),
                (Weights::Stay, Keep::State),
            ] {
                let of = |size| held_and_said(&*stack, &engine, weights, keep, size);
                let about = format!("{stack:?}, {threads} threads, weights {weights:?}, {keep:?}");
                let [held, said] = of([9, 12]);
                assert!(held > said, "{about}: holds {held}, says {said}");
                let others = held - said;
                assert!(others < OTHERS, "{about}: holds {held}, says {said}");
                for size in [[1, 1], [20, 3], [3, 20]] {
                    let [held, said] = of(size);
                    assert_eq!(held, said + others, "{about}: {size:?}");
                }
            }
        }
    }
}
