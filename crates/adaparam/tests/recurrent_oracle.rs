//! The recurrent layers agree with a slow version of themselves that was written from the paper's equations, and
//! that version's gradients agree with finite differences, for every choice there is.

mod lstm_oracle;

use std::sync::{Mutex, OnceLock};

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, InputTying, Lstm, LstmAdaptation, LstmConfig, Masks,
    PolicyLayout, PolicyModel, PolicyStart, Recurrent, Summary,
};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, DeviceConfig, Distribution, FloatDType, Tensor};
use lstm_oracle::{Choices, Comparison, Layer, Reading, Stack, adaptive_layers, plain_layers};

const BATCH: usize = 2;
const LENGTH: usize = 3;
const D_INPUT: usize = 3;
const D_HIDDEN: usize = 2;
const D_OUTPUT: usize = 4;
const D_LATENT: usize = 2;

/// Tests share the device's random numbers; one after the other, each draws the same ones every time.
static RANDOM_NUMBERS: Mutex<()> = Mutex::new(());

#[test]
fn the_adaptive_lstm_is_what_the_equations_say() {
    let _turn = RANDOM_NUMBERS.lock();
    let device = f64_device();
    for config in every_choice() {
        for dropout in [None, Some([("latent", 0.4), ("hidden", 0.4)])] {
            device.seed(7);
            let lstm = with_random_parameters(config.init(&device));
            let masks = dropout
                .as_ref()
                .map(|dropout| lstm.draw_masks(BATCH, dropout, &device));
            check_adaptive(
                &format!("{config:?}, {dropout:?}"),
                &config,
                &lstm,
                masks.as_ref(),
            );
        }
    }
}

#[test]
fn the_lstm_is_what_the_equations_say() {
    let _turn = RANDOM_NUMBERS.lock();
    let device = f64_device();
    for n_layers in 1..=3 {
        for bias in [true, false] {
            for dropout in [0.0, 0.4] {
                device.seed(7);
                let config = LstmConfig::new(D_INPUT, D_HIDDEN)
                    .with_batch_first(false)
                    .with_d_output(Some(D_OUTPUT))
                    .with_n_layers(n_layers)
                    .with_bias(bias);
                let lstm = with_random_parameters(config.init(&device));
                let masks = lstm.draw_masks(BATCH, &[("hidden", dropout)], &device);
                check_plain(&format!("{config:?}, {dropout}"), &lstm, false, &masks);
            }
        }
    }
}

/// Layers of which the lower or all are as wide as their input.
#[test]
fn layers_that_skip_are_what_the_equations_say() {
    let _turn = RANDOM_NUMBERS.lock();
    let device = f64_device();
    for (d_input, d_output) in [
        (D_HIDDEN, D_OUTPUT),
        (D_INPUT, D_HIDDEN),
        (D_HIDDEN, D_HIDDEN),
    ] {
        for n_layers in 1..=4 {
            device.seed(7);
            let plain = LstmConfig::new(d_input, D_HIDDEN)
                .with_batch_first(false)
                .with_d_output(Some(d_output))
                .with_n_layers(n_layers)
                .with_skip(true);
            let lstm = with_random_parameters(plain.init(&device));
            let masks = lstm.draw_masks(BATCH, &[("hidden", 0.4)], &device);
            check_plain(&format!("{plain:?}"), &lstm, true, &masks);
            for start in [PolicyStart::Paper, PolicyStart::Identity] {
                let config = AdaptiveLstmConfig::new(d_input, D_HIDDEN, D_LATENT)
                    .with_batch_first(false)
                    .with_d_output(Some(d_output))
                    .with_n_layers(n_layers)
                    .with_policy_start(start)
                    .with_skip(true);
                let lstm = with_random_parameters(config.init(&device));
                let rates = [("latent", 0.4), ("hidden", 0.4)];
                let masks = lstm.draw_masks(BATCH, &rates, &device);
                check_adaptive(&format!("{config:?}"), &config, &lstm, Some(&masks));
            }
        }
    }
}

fn every_choice() -> Vec<AdaptiveLstmConfig> {
    let mut configs = Vec::new();
    for policy in [PolicyModel::Static, PolicyModel::Recurrent] {
        for summary in [Summary::Own, Summary::Hybrid] {
            for adaptation in [
                LstmAdaptation::Output,
                LstmAdaptation::Input,
                LstmAdaptation::Io,
            ] {
                for tying in [InputTying::Tied, InputTying::Untied] {
                    for layout in [PolicyLayout::Paper, PolicyLayout::Released] {
                        for bias in [true, false] {
                            for n_layers in 1..=3 {
                                let paper = AdaptiveLstmConfig::new(D_INPUT, D_HIDDEN, D_LATENT)
                                    .with_batch_first(false)
                                    .with_d_output(Some(D_OUTPUT))
                                    .with_n_layers(n_layers)
                                    .with_bias(bias)
                                    .with_policy(policy)
                                    .with_summary(summary)
                                    .with_adaptation(adaptation)
                                    .with_tying(tying)
                                    .with_layout(layout);
                                let identity =
                                    paper.clone().with_policy_start(PolicyStart::Identity);
                                configs.extend([paper, identity]);
                            }
                        }
                    }
                }
            }
        }
    }
    configs
}

fn check_adaptive(
    case: &str,
    config: &AdaptiveLstmConfig,
    lstm: &AdaptiveLstm,
    masks: Option<&Masks>,
) {
    let choices = Choices {
        policy: config.policy,
        summary: lstm.summary(),
        adaptation: Some(config.adaptation),
        tying: config.tying,
        layout: config.layout,
        start: config.policy_start,
    };
    check(case, lstm, (choices, config.skip), masks, |reading| {
        adaptive_layers(lstm, reading)
    });
}

fn check_plain(case: &str, lstm: &Lstm, skip: bool, masks: &Masks) {
    let choices = Choices {
        policy: PolicyModel::Static,
        summary: Summary::Own,
        adaptation: None,
        tying: InputTying::Tied,
        layout: PolicyLayout::Paper,
        start: PolicyStart::Paper,
    };
    check(case, lstm, (choices, skip), Some(masks), |reading| {
        plain_layers(lstm, reading)
    });
}

fn check(
    case: &str,
    lstm: &dyn Recurrent,
    (choices, skip): (Choices, bool),
    masks: Option<&Masks>,
    read: impl Fn(&Reading<'_>) -> Vec<Layer>,
) {
    let device = f64_device();
    let input = random([LENGTH, BATCH, lstm.d_input()]).require_grad();
    let start = lstm
        .zero_state(BATCH, &device)
        .map_named(|_, zeros| random(zeros.dims()).require_grad());
    let d_end = lstm
        .zero_state(BATCH, &device)
        .map_named(|_, zeros| random(zeros.dims()));
    let d_output = random([LENGTH, BATCH, lstm.d_output()]);

    let (output, end) = lstm.forward(input.clone(), Some(start.clone()), masks);
    Comparison {
        case,
        stack: Stack {
            choices,
            skip,
            layers: read(&Reading::Values),
        },
        masks: masks.cloned().unwrap_or_else(|| Masks::none(lstm.sites())),
        d_output,
        d_end,
        input,
        start,
        output,
        end,
    }
    .check(|gradients| read(&Reading::Gradients(gradients)));
}

/// The device in f64, which has to be said before anything else happens on it.
fn f64_device() -> Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    let configured = || {
        let mut device = Device::flex();
        device
            .configure(DeviceConfig::default().float_dtype(FloatDType::F64))
            .expect("nothing has used the device yet");
        device.autodiff()
    };
    DEVICE.get_or_init(configured).clone()
}

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 0.7), &f64_device())
}

fn with_random_parameters<M: Module>(module: M) -> M {
    struct Randomiser;
    impl ModuleMapper for Randomiser {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            Param::from_tensor(random(param.dims()))
        }
    }
    module.map(&mut Randomiser)
}
