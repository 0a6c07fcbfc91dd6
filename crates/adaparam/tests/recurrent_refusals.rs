//! What does not fit a stack is refused in words that name the value and the rule, whichever way it is given.

use std::panic::{AssertUnwindSafe, catch_unwind};

use adaparam::recurrent::{AdaptiveLstmConfig, Execution, LstmConfig, Masks, Recurrent, State};
use burn::tensor::{Device, Tensor};

/// Two layers that read 5 numbers, in each kind and each way of computing them.
fn stacks() -> Vec<Box<dyn Recurrent>> {
    let device = Device::flex();
    let mut stacks: Vec<Box<dyn Recurrent>> = Vec::new();
    for execution in [Execution::Readable, Execution::Fused] {
        let plain = LstmConfig::new(5, 7)
            .with_batch_first(false)
            .with_n_layers(2);
        stacks.push(Box::new(plain.with_execution(execution).init(&device)));
        let adaptive = AdaptiveLstmConfig::new(5, 7, 3)
            .with_batch_first(false)
            .with_n_layers(2);
        stacks.push(Box::new(adaptive.with_execution(execution).init(&device)));
    }
    stacks
}

/// Four steps of three rows.
fn input() -> Tensor<3> {
    Tensor::ones([4, 3, 5], &Device::flex())
}

fn x() -> Tensor<2> {
    Tensor::ones([3, 5], &Device::flex())
}

fn zeros(stack: &dyn Recurrent, batch_size: usize) -> State {
    stack.zero_state(batch_size, &Device::flex())
}

/// The words with which `work` is refused.
///
/// # Panics
///
/// Panics if it is not.
fn refusal<T>(work: impl FnOnce() -> T) -> String {
    let refused = catch_unwind(AssertUnwindSafe(|| {
        work();
    }));
    let words = refused.expect_err("this was to be refused");
    let words = words.downcast::<String>().map(|words| *words);
    words.unwrap_or_else(|words| words.downcast_ref::<&str>().unwrap_or(&"").to_string())
}

/// What `forward`, `forward_ragged` and `step` say of the same mistake.
fn refusals(stack: &dyn Recurrent, state: Option<&State>, masks: Option<&Masks>) -> [String; 3] {
    let start = || state.cloned().unwrap_or_else(|| zeros(stack, 3));
    [
        refusal(|| stack.forward(input(), state.cloned(), masks)),
        refusal(|| stack.forward_ragged(input(), &[4, 1, 2], state.cloned(), masks)),
        refusal(|| stack.step(x(), start(), masks)),
    ]
}

#[test]
fn an_input_of_another_width() {
    let device = Device::flex();
    for stack in stacks() {
        let words = "d_input is 5, got 6: the input is [4, 3, 6], [steps, batch, d_input]";
        let wide = || Tensor::ones([4, 3, 6], &device);
        assert_eq!(refusal(|| stack.forward(wide(), None, None)), words);
        let ragged = || stack.forward_ragged(wide(), &[4, 1, 2], None, None);
        assert_eq!(refusal(ragged), words);
        let words = "d_input is 5, got 6: the input is [3, 6], [batch, d_input]";
        let x = Tensor::ones([3, 6], &device);
        assert_eq!(refusal(|| stack.step(x, zeros(&*stack, 3), None)), words);
    }
}

#[test]
fn an_input_without_steps() {
    for stack in stacks() {
        let none = || Tensor::ones([0, 3, 5], &Device::flex());
        let words = "the input is [0, 3, 5], [steps, batch, d_input]: a sequence must have at least one step";
        assert_eq!(refusal(|| stack.forward(none(), None, None)), words);
    }
}

#[test]
fn a_state_of_other_layers() {
    let device = Device::flex();
    let one_layer = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .init(&device)
        .zero_state(3, &device);
    for stack in stacks() {
        let names: Vec<String> = stack.states().into_iter().map(|slot| slot.name).collect();
        let words = format!(
            "the state is of other layers: it has layers.0.hidden, layers.0.cell; these layers carry {}",
            names.join(", ")
        );
        for refusal in refusals(&*stack, Some(&one_layer), None) {
            assert_eq!(refusal, words);
        }
    }
}

#[test]
fn a_state_of_other_rows_or_another_width() {
    let device = Device::flex();
    for stack in stacks() {
        let first = stack.states()[0].name.clone();
        let words = |dims: [usize; 2]| {
            format!("state {first} must be [3, 7], [batch, width], got {dims:?}")
        };
        for refusal in refusals(&*stack, Some(&zeros(&*stack, 2)), None) {
            assert_eq!(refusal, words([2, 7]));
        }
        let wide = zeros(&*stack, 3).map_named(|_, _| Tensor::zeros([3, 8], &device));
        for refusal in refusals(&*stack, Some(&wide), None) {
            assert_eq!(refusal, words([3, 8]));
        }
    }
}

#[test]
fn masks_of_other_layers() {
    let device = Device::flex();
    let of_one_layer = Masks::none(
        LstmConfig::new(5, 7)
            .with_batch_first(false)
            .init(&device)
            .sites(),
    );
    for stack in stacks() {
        let names: Vec<String> = stack.sites().into_iter().map(|site| site.name).collect();
        let words = format!(
            "the masks are of other layers: they have layers.0.hidden; these layers have the sites {}",
            names.join(", ")
        );
        for refusal in refusals(&*stack, None, Some(&of_one_layer)) {
            assert_eq!(refusal, words);
        }
        assert!(!stack.runs_fused(&input(), None, Some(&of_one_layer)));
    }
}

#[test]
fn masks_of_other_rows_or_another_width() {
    let device = Device::flex();
    for stack in stacks() {
        for dims in [[2, 7], [3, 6]] {
            let mask = Tensor::ones(dims, &device);
            let masks = Masks::none(stack.sites()).with("layers.1.hidden", Some(mask));
            let words = format!(
                "mask layers.1.hidden must be [3, 7], [batch, width], or one row for all, got {dims:?}"
            );
            for refusal in refusals(&*stack, None, Some(&masks)) {
                assert_eq!(refusal, words);
            }
        }
    }
}

#[test]
fn lengths_that_are_not_within_the_input() {
    for stack in stacks() {
        for (lengths, words) in [
            (
                &[4, 0, 2][..],
                "the length of row 1 is 0: must be from 1 to 4, the steps of the input",
            ),
            (
                &[1, 2, 5],
                "the length of row 2 is 5: must be from 1 to 4, the steps of the input",
            ),
            (&[4, 4], "there are 2 lengths for 3 rows: each row has one"),
            (
                &[4, 4, 4, 4],
                "there are 4 lengths for 3 rows: each row has one",
            ),
        ] {
            let ragged = || stack.forward_ragged(input(), lengths, None, None);
            assert_eq!(refusal(ragged), words);
        }
    }
}

#[test]
fn policies_of_what_does_not_fit() {
    let device = Device::flex();
    let lstm = AdaptiveLstmConfig::new(5, 7, 3)
        .with_batch_first(false)
        .with_n_layers(2)
        .init(&device);
    let none = Tensor::ones([0, 3, 5], &device);
    assert_eq!(
        refusal(|| lstm.forward_with_policies(none, None, None)),
        "the input is [0, 3, 5], [steps, batch, d_input]: a sequence must have at least one step"
    );
    let other = Masks::none(
        LstmConfig::new(5, 7)
            .with_batch_first(false)
            .init(&device)
            .sites(),
    );
    assert_eq!(
        refusal(|| lstm.forward_with_policies(input(), None, Some(&other))),
        "the masks are of other layers: they have layers.0.hidden; these layers have the sites \
         layers.0.hidden, layers.0.latent, layers.1.hidden, layers.1.latent"
    );
}

#[test]
fn names_that_a_stack_has_not() {
    let device = Device::flex();
    let lstm = LstmConfig::new(5, 7).with_batch_first(false).init(&device);
    let state = zeros(&lstm, 3);
    assert_eq!(
        refusal(|| state["layers.0.latent"].clone()),
        "the state has no layers.0.latent; it has layers.0.hidden, layers.0.cell"
    );
    assert_eq!(
        refusal(|| Masks::none(lstm.sites()).with("layers.0.latent", None)),
        "no site of dropout is called layers.0.latent; there are layers.0.hidden"
    );
    assert_eq!(
        refusal(|| lstm.draw_masks(3, &[("latent", 0.1)], &device)),
        "no site of dropout is called latent; these layers have hidden"
    );
    assert_eq!(
        refusal(|| lstm.draw_masks(3, &[("hidden", 1.0)], &device)),
        "variational_mask: probability = 1: must be at least 0 and below 1"
    );
    assert_eq!(
        refusal(|| State::new(lstm.states(), Vec::new())),
        "a state has a tensor for each slot: there are 0 tensors for 2 slots"
    );
}
