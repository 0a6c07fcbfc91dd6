//! What every cell gets by being one: ragged batches, both directions, states that go on, dropout.

#[path = "../window/mod.rs"]
mod window;

use adaparam::recurrent::{
    AdaptiveGruSettings, AdaptiveRnnSettings, Bidirectional, Execution, GruSettings,
    HyperLstmSettings, Masks, MelisLstmSettings, MiLstmSettings, MiRnnSettings, MinGruSettings,
    MinLstmSettings, MlstmSettings, MogrifierSettings, MrnnSettings, NasSettings, Recurrent,
    RhnSettings, RnnSettings, SlstmSettings, StackSizes, SvaLstmSettings,
};
use burn::module::{Module, ModuleDisplay};
use burn::tensor::{Device, Tensor};
use window::{Given, Numbers, Window};

const SIZES: StackSizes = StackSizes {
    d_input: 5,
    d_hidden: 7,
    d_output: 6,
    n_layers: 2,
    skip: false,
};

/// Two layers of a cell: everything that they can do, in comparison with rows on their own. Time comes first.
fn everywhere<R: Recurrent + Module + ModuleDisplay>(name: &str, stack: impl Fn(&Device) -> R) {
    ragged_batches_are_their_rows(name, stack(&Device::flex().autodiff()));
    both_directions_are_two_readings(name, &stack);
    windows_go_on(name, stack(&Device::flex()));
    kept_units_do_not_grow(name, stack(&Device::flex()));
}

fn ragged_batches_are_their_rows<R: Recurrent + Module>(name: &str, stack: R) {
    let device = Device::flex().autodiff();
    let masks = Given {
        state: false,
        masks: true,
    };
    assert_eq!((stack.d_input(), stack.d_output()), (5, 6), "{name}");
    let window = Window::new(stack, [5, 4], masks, 1, &device).ragged(&[3, 5, 1, 2]);
    let expected = window.outcome_of_rows(Execution::Readable);
    let outcome = window.outcome(Execution::Readable);
    outcome.assert_agrees(&expected, name);
}

fn both_directions_are_two_readings<R: Recurrent + Module + ModuleDisplay>(
    name: &str,
    stack: &impl Fn(&Device) -> R,
) {
    let device = Device::flex();
    let both = Bidirectional::new(stack(&device), stack(&device));
    let both = Numbers(1).fill(both, &device);
    let input = Numbers(2).tensor([5, 2, 5], 1.0, &device); // [T, B, I]
    let ours = both.forward_ragged(input.clone(), &[5, 3]).output;
    let second = input.narrow(1, 1, 1).narrow(0, 0, 3);
    let (ahead, _) = both.onward.forward(second.clone(), None, None);
    let (back, _) = both.backward.forward(second.flip([0]), None, None);
    let expected = Tensor::cat(vec![ahead, back.flip([0])], 2);
    let ours = ours.narrow(1, 1, 1).narrow(0, 0, 3);
    let difference: f32 = (ours - expected).abs().max().into_scalar();
    assert!(difference < 1e-6, "{name}: {difference}");
}

/// Two windows with a carried state are one.
fn windows_go_on<R: Recurrent + Module>(name: &str, stack: R) {
    let device = Device::flex();
    let stack = Numbers(3).fill(stack, &device);
    let input = Numbers(4).tensor([6, 2, 5], 1.0, &device);
    let (whole, _) = stack.forward(input.clone(), None, None);
    let (first, state) = stack.forward(input.clone().narrow(0, 0, 2), None, None);
    let (second, _) = stack.forward(input.narrow(0, 2, 4), Some(state), None);
    let difference = whole - Tensor::cat(vec![first, second], 0);
    let difference: f32 = difference.abs().max().into_scalar();
    assert!(difference < 1e-6, "{name}: {difference}");
}

/// Units that dropout keeps are larger by a factor, step after step: whatever is carried must not take the factor along.
fn kept_units_do_not_grow<R: Recurrent + Module>(name: &str, stack: R) {
    let device = Device::flex();
    let stack = Numbers(5).fill(stack, &device);
    let input = Numbers(6).tensor([300, 2, 5], 1.0, &device);
    let none = Masks::none(stack.sites());
    let masks = stack.sites().iter().fold(none, |masks, site| {
        let kept = Tensor::full([2, site.width], 1.5, &device);
        masks.with(&site.name, Some(kept))
    });
    let (output, state) = stack.forward(input, None, Some(&masks));
    let largest: f32 = output.abs().max().into_scalar();
    assert!(largest < 20.0, "{name}: {largest}");
    for (part, values) in state.iter() {
        let largest: f32 = values.clone().abs().max().into_scalar();
        assert!(largest.is_finite(), "{name}, {part}: {largest}");
    }
}

macro_rules! every {
    ($($kind:ident),* $(,)?) => {
        $(everywhere(stringify!($kind), |device| {
            $kind::default().stack(SIZES, device).with_batch_first(false)
        });)*
    };
}

#[test]
fn every_cell_reads_ragged_batches_and_both_directions_and_goes_on() {
    every![
        GruSettings,
        HyperLstmSettings,
        MelisLstmSettings,
        MiLstmSettings,
        MiRnnSettings,
        MinGruSettings,
        MinLstmSettings,
        MlstmSettings,
        MogrifierSettings,
        MrnnSettings,
        NasSettings,
        RhnSettings,
        RnnSettings,
        SlstmSettings,
        SvaLstmSettings,
        AdaptiveRnnSettings,
        AdaptiveGruSettings,
    ];
}
