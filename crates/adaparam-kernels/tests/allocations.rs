//! From the third window on, a runner allocates nothing. Alone in its file and without the harness of other tests, because it
//! counts what all threads allocate, and the harness has one of its own.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{self, Adaptation, Latent, PolicyLayout, PolicyStart, Summary};
use adaparam_kernels::lstm;
use adaparam_kernels::stack::{Keep, Runner, Stack, State, Weights};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::stack::{Case, Summed};
use support::start_threads;

/// The system's allocator, with a count of how often it was asked for memory.
struct Counting;

static ASKED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all work is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { System.realloc(start, layout, size) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn stacks() -> Vec<Box<dyn Stack>> {
    let adaptive = |kind, adaptation, layout, hidden| alstm::Shape {
        input: 7,
        hidden,
        latent: 5,
        kind,
        summary: Summary::Hybrid,
        adaptation,
        layout,
        start: PolicyStart::Identity,
        bias: true,
        skip: false,
    };
    let both = Adaptation::InputOutput;
    let paper = PolicyLayout::Paper;
    vec![
        Box::new(adaptive(Latent::Recurrent, both, paper, vec![19, 6])),
        Box::new(adaptive(
            Latent::Static,
            Adaptation::Input,
            PolicyLayout::Released,
            vec![19, 6],
        )),
        // Its threads divide columns instead of rows.
        Box::new(adaptive(Latent::Recurrent, both, paper, vec![520, 6])),
        Box::new(lstm::Shape {
            input: 7,
            hidden: vec![19, 6],
            bias: true,
            skip: false,
            input_gate: lstm::InputGate::Free,
        }),
        Box::new(lstm::Shape {
            input: 7,
            hidden: vec![7, 7, 6],
            bias: true,
            skip: true,
            input_gate: lstm::InputGate::Free,
        }),
        Summed {
            input: 7,
            width: 19,
            layers: 2,
            output: 6,
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
            skip: true,
            ..adaptive(Latent::Recurrent, both, paper, vec![7, 7, 6])
        }),
    ]
}

/// What a window needs that is not its runner's.
struct Outside {
    state: State,
    output: Vec<f32>,
    d_state: State,
    d_x: Vec<f32>,
    gradients: Vec<Vec<f32>>,
}

impl Outside {
    fn of(case: &Case) -> Self {
        Self {
            state: case.state.clone(),
            output: case.d_output.clone(),
            d_state: case.d_state.clone(),
            d_x: case.x.clone(),
            gradients: case.weights.clone(),
        }
    }
}

/// How often memory is asked for in a window.
fn asked(case: &Case, outside: &mut Outside, runner: &mut dyn Runner, engine: &Engine) -> usize {
    let gradients = outside.gradients.iter_mut();
    let mut gradients: Vec<&mut [f32]> = gradients.map(Vec::as_mut_slice).collect();
    case.with_operands(|operands| {
        let before = ASKED.load(Ordering::SeqCst);
        let Outside {
            state,
            output,
            d_state,
            d_x,
            ..
        } = outside;
        let d_output = &case.d_output;
        let gradients = &mut gradients;
        runner.pack(engine, operands.weights).unwrap();
        for keep in [Keep::State, Keep::Tape] {
            runner
                .forward(engine, operands, keep, state, output)
                .unwrap();
        }
        runner
            .through_time(engine, operands, d_output, d_state, d_x, gradients)
            .unwrap();
        runner
            .weight_gradients(engine, operands, gradients)
            .unwrap();
        ASKED.load(Ordering::SeqCst) - before
    })
}

fn main() {
    a_window_allocates_nothing_from_the_third_on();
}

fn a_window_allocates_nothing_from_the_third_on() {
    for stack in stacks() {
        for threads in [1, 2, 3] {
            let engine = Engine::new(threads);
            start_threads(&engine);
            for weights in [Weights::Change, Weights::Stay] {
                for lengths in [None, Some(vec![5, 1, 2, 3, 4, 5, 1, 1, 2, 3, 4, 5])] {
                    let mut runner = stack.runner(weights);
                    let mut largest = Case::new(&*stack, 5, 12, true, 3);
                    largest.lengths.clone_from(&lengths);
                    let mut cases = vec![largest.clone(); 3];
                    cases.push(Case::new(&*stack, 4, 11, false, 3));
                    cases.push(Case::new(&*stack, 1, 1, true, 3));
                    cases.push(largest);
                    let mut counts = Vec::new();
                    for case in &cases {
                        let mut outside = Outside::of(case);
                        counts.push(asked(case, &mut outside, &mut *runner, &engine));
                    }
                    assert!(counts[0] > 0, "the first window makes the buffers");
                    assert!(
                        counts[2..].iter().all(|&count| count == 0),
                        "{stack:?}, {threads} threads, weights {weights:?}, lengths {lengths:?}: {counts:?}"
                    );
                }
            }
        }
    }
}
