//! A cell that is not of this crate has all that its own cells have.

mod window;

use adaparam::recurrent::{
    Bidirectional, Cell, CellStep, Execution, Recurrent, Slot, StackSizes, Stacked, dropped,
};
use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use window::{Given, Numbers, Window};

/// A cell with states of different widths: a hidden state, and a trace of how large it was, which damps it.
#[derive(Module, Debug)]
struct Damped {
    input: Linear,
    hidden: Linear,
    damping: Param<Tensor<1>>,
}

impl Damped {
    fn new(d_input: usize, d_hidden: usize, device: &Device) -> Self {
        Self {
            input: LinearConfig::new(d_input, d_hidden).init(device),
            hidden: LinearConfig::new(d_hidden, d_hidden).init(device),
            damping: Param::from_tensor(Tensor::ones([1], device)),
        }
    }
}

impl Cell for Damped {
    fn d_input(&self) -> usize {
        self.input.weight.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        let d_hidden = self.hidden.weight.lazy_shape()[0];
        vec![Slot::new("hidden", d_hidden), Slot::new("trace", 1)]
    }

    fn sites(&self) -> Vec<Slot> {
        self.states()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h, trace] = state.try_into().expect("there are two states");
        let damping = (trace.clone() * self.damping.val().unsqueeze()).exp(); // [B, 1]
        let h = (self.input.forward(x) + self.hidden.forward(h)).tanh() / (damping + 1.0);
        let trace = trace * 0.5 + h.clone().square().mean_dim(1);
        let state = [h.clone(), trace].into_iter().zip(masks);
        CellStep {
            output: h,
            state: state
                .map(|(part, mask)| dropped(part, mask.as_ref()))
                .collect(),
        }
    }

    fn name() -> &'static str {
        "Damped"
    }
}

fn stack(device: &Device) -> Stacked<Damped> {
    let sizes = StackSizes {
        d_output: 6,
        ..StackSizes::new(5, 7, 3)
    };
    Stacked::new(sizes, |d_input, d_hidden| {
        Damped::new(d_input, d_hidden, device)
    })
    .with_batch_first(false)
}

fn window(device: &Device) -> Window<Stacked<Damped>> {
    let everything = Given {
        state: true,
        masks: true,
    };
    Window::new(stack(device), [5, 4], everything, 1, device)
}

#[test]
fn it_says_what_it_has() {
    let stack = stack(&Device::flex());
    assert_eq!((stack.d_input(), stack.d_output()), (5, 6));
    let states: Vec<(String, usize)> = stack
        .states()
        .into_iter()
        .map(|slot| (slot.name, slot.width))
        .collect();
    let expected = [
        ("layers.0.hidden", 7),
        ("layers.0.trace", 1),
        ("layers.1.hidden", 7),
        ("layers.1.trace", 1),
        ("layers.2.hidden", 6),
        ("layers.2.trace", 1),
    ];
    assert_eq!(
        states,
        expected.map(|(name, width)| (name.to_owned(), width))
    );
    assert_eq!(stack.stored_name("layers.1.damping"), "layers.1.damping");
    assert_eq!(stack.second_bias("layers.1.input.bias"), None);
    assert_eq!(
        stack.to_string(),
        "Damped {d_input: 5, d_hidden: [7, 7, 6], params: 303}"
    );
}

#[test]
fn its_windows_are_readable_whatever_is_asked_for_and_are_its_steps_to_the_bit() {
    let device = Device::flex();
    let stack = Numbers(1).fill(stack(&device), &device);
    let input = Numbers(2).tensor([5, 4, 5], 1.0, &device);
    assert_eq!(stack.execution(), Execution::Fused);
    assert!(!stack.runs_fused(&input, None, None));
    let (output, end) = stack.forward(input.clone(), None, None);
    let mut state = stack.zero_state(4, &device);
    let mut outputs = Vec::new();
    for x in input.iter_dim(0) {
        let (output, after) = stack.step(x.squeeze_dim(0), state, None);
        outputs.push(output);
        state = after;
    }
    let expected: Tensor<3> = Tensor::stack(outputs, 0);
    output.into_data().assert_eq(&expected.into_data(), true);
    for ((name, part), expected) in end.iter().zip(state.parts()) {
        assert_eq!(part.to_data(), expected.to_data(), "{name}");
    }
}

#[test]
fn its_ragged_batches_are_their_rows_run_apart() {
    let window = window(&Device::flex().autodiff()).ragged(&[3, 5, 1, 2]);
    let expected = window.outcome_of_rows(Execution::Readable);
    let outcome = window.outcome(Execution::Readable);
    outcome.assert_agrees(&expected, "a cell of one's own");
}

#[test]
fn it_reads_in_both_directions() {
    let device = Device::flex();
    let both = Numbers(1).fill(Bidirectional::new(stack(&device), stack(&device)), &device);
    let input = Numbers(2).tensor([5, 2, 5], 1.0, &device);
    let ours = both.forward_ragged(input.clone(), &[5, 3]).output;
    let second = input.narrow(1, 1, 1).narrow(0, 0, 3);
    let (ahead, _) = both.onward.forward(second.clone(), None, None);
    let (back, _) = both.backward.forward(second.flip([0]), None, None);
    let expected = Tensor::cat(vec![ahead, back.flip([0])], 2);
    let ours = ours.narrow(1, 1, 1).narrow(0, 0, 3);
    let difference: f32 = (ours - expected).abs().max().into_scalar();
    assert!(difference < 1e-6, "{difference}");
}
