//! The recurrent layers agree with a slow version of themselves that was written from the paper's equations, and
//! that version's gradients agree with finite differences, for every choice there is.

mod lstm_oracle;

use std::sync::{Mutex, OnceLock};

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, AdaptiveLstmDropout, AdaptiveLstmMasks, AdaptiveLstmState,
    InputTying, Lstm, LstmAdaptation, LstmConfig, LstmMasks, LstmState, PolicyLayout, PolicyModel,
    Summary,
};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, DeviceConfig, Distribution, FloatDType, Tensor};
use lstm_oracle::{
    Choices, Comparison, Reading, Stack, StateTensors, adaptive_layers, plain_layers,
};

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
        for dropout in [None, Some(AdaptiveLstmDropout::new(0.4, 0.4))] {
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
                    .with_d_output(Some(D_OUTPUT))
                    .with_n_layers(n_layers)
                    .with_bias(bias);
                let lstm = with_random_parameters(config.init(&device));
                let masks = lstm.draw_masks(BATCH, dropout, &device);
                check_plain(&format!("{config:?}, {dropout}"), &lstm, &masks);
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
                                configs.push(
                                    AdaptiveLstmConfig::new(D_INPUT, D_HIDDEN, D_LATENT)
                                        .with_d_output(Some(D_OUTPUT))
                                        .with_n_layers(n_layers)
                                        .with_bias(bias)
                                        .with_policy(policy)
                                        .with_summary(summary)
                                        .with_adaptation(adaptation)
                                        .with_tying(tying)
                                        .with_layout(layout),
                                );
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
    masks: Option<&AdaptiveLstmMasks>,
) {
    let device = f64_device();
    let input = random([LENGTH, BATCH, D_INPUT]).require_grad();
    let start = lstm
        .zero_state(BATCH, &device)
        .map_named(|_, zeros| random(zeros.dims()).require_grad());
    let d_end = lstm
        .zero_state(BATCH, &device)
        .map_named(|_, zeros| random(zeros.dims()));
    let d_output = random([LENGTH, BATCH, D_OUTPUT]);

    let (output, end) = lstm.forward(input.clone(), Some(start.clone()), masks);
    let states = |state: &AdaptiveLstmState| -> Vec<StateTensors> {
        let layers = state.layers.iter();
        layers
            .map(|layer| StateTensors {
                z: Some(layer.latent.hidden.clone()),
                z_cell: layer.latent.cell.clone(),
                h: layer.main.hidden.clone(),
                h_cell: layer.main.cell.clone(),
            })
            .collect()
    };
    Comparison {
        case,
        stack: Stack {
            choices: Choices {
                policy: config.policy,
                summary: lstm.summary(),
                adaptation: Some(config.adaptation),
                tying: config.tying,
                layout: config.layout,
            },
            layers: adaptive_layers(lstm, &Reading::Values),
        },
        masks: masks.map_or_else(
            || vec![[None, None]; lstm.layers.len()],
            |masks| {
                let pairs = masks.latent.iter().zip(&masks.hidden);
                pairs
                    .map(|(latent, hidden)| [latent.clone(), hidden.clone()])
                    .collect()
            },
        ),
        d_output,
        d_end: states(&d_end),
        input,
        start: states(&start),
        output,
        end: states(&end),
    }
    .check(|gradients| adaptive_layers(lstm, &Reading::Gradients(gradients)));
}

fn check_plain(case: &str, lstm: &Lstm, masks: &LstmMasks) {
    let device = f64_device();
    let input = random([LENGTH, BATCH, D_INPUT]).require_grad();
    let start = lstm
        .zero_state(BATCH, &device)
        .map_named(|_, zeros| random(zeros.dims()).require_grad());
    let d_end = lstm
        .zero_state(BATCH, &device)
        .map_named(|_, zeros| random(zeros.dims()));
    let d_output = random([LENGTH, BATCH, D_OUTPUT]);

    let (output, end) = lstm.forward(input.clone(), Some(start.clone()), Some(masks));
    let states = |state: &LstmState| -> Vec<StateTensors> {
        let layers = state.layers.iter();
        layers
            .map(|layer| StateTensors {
                z: None,
                z_cell: None,
                h: layer.hidden.clone(),
                h_cell: layer.cell.clone(),
            })
            .collect()
    };
    Comparison {
        case,
        stack: Stack {
            choices: Choices {
                policy: PolicyModel::Static,
                summary: Summary::Own,
                adaptation: None,
                tying: InputTying::Tied,
                layout: PolicyLayout::Paper,
            },
            layers: plain_layers(lstm, &Reading::Values),
        },
        masks: masks
            .hidden
            .iter()
            .map(|mask| [None, mask.clone()])
            .collect(),
        d_output,
        d_end: states(&d_end),
        input,
        start: states(&start),
        output,
        end: states(&end),
    }
    .check(|gradients| plain_layers(lstm, &Reading::Gradients(gradients)));
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
