//! One step of cells of one number, worked out by hand from the equations: 12 decimals of each result.

use std::collections::BTreeMap;

use adaparam::recurrent::{AdaptiveLstmConfig, Execution, MainState, SubPolicies};
use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};

use super::case::Case;
use super::given::{Given, Sizes};
use super::tape::Matrix;

/// The fixture of all gates: `W`, `U` and `b` of `i, f, z, o`.
const GATES: [(&str, [f64; 3]); 4] = [
    ("i", [0.1, 0.5, 0.01]),
    ("f", [0.2, -0.6, 0.02]),
    ("z", [0.3, 0.7, 0.03]),
    ("o", [0.4, -0.8, 0.04]),
];
const X: f64 = 1.0;
const STATE: [(&str, f64); 2] = [("h", 0.5), ("c", -0.3)];

type Numbers = BTreeMap<String, Vec<f64>>;

/// Parameters by name; most have one number.
struct Fixture(Numbers);

impl Fixture {
    fn gates() -> Self {
        let mut all = Self(Numbers::new());
        for (gate, [w, u, b]) in GATES {
            all = all.with(&[
                (&format!("W_{gate}"), w),
                (&format!("U_{gate}"), u),
                (&format!("b_{gate}"), b),
            ]);
        }
        all
    }

    fn of(pairs: &[(&str, f64)]) -> Self {
        Self(Numbers::new()).with(pairs)
    }

    fn with(mut self, pairs: &[(&str, f64)]) -> Self {
        for (name, value) in pairs {
            self.0.insert((*name).to_owned(), vec![*value]);
        }
        self
    }

    fn case(&self, name: &str) -> Case {
        Case::named(name, |name| self.0.contains_key(name))
    }

    /// Compares one step with the expected states: 1e-9 by the equations, 1e-6 by the layer.
    fn assert_gives(&self, case: &Case, state: &[(&str, f64)], expected: &[(&str, f64)]) {
        let row = |values: &Vec<f64>| Matrix::new(1, values.len(), values.clone());
        let states = state.iter();
        let given = Given {
            sizes: Sizes {
                input: 1,
                hidden: 1,
                steps: 1,
                batch: 1,
            },
            input: vec![X],
            cotangent: vec![1.0],
            parameters: self.0.iter().map(|(k, v)| (k.clone(), row(v))).collect(),
            states: states
                .map(|(letter, value)| ((*letter).to_owned(), row(&vec![*value])))
                .collect(),
        };
        let by_equations = given.by_the_tape(case);
        let by_layer = case.by_the_layer(&given, Execution::Fused);
        for (letter, expected) in expected {
            for (numbers, tolerance) in [(&by_equations, 1e-9), (&by_layer, 1e-6)] {
                let value = numbers[&format!("final.{letter}")][0];
                assert!(
                    (value - expected).abs() <= tolerance,
                    "{}: {letter} is {value}, not {expected} ± {tolerance:e}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn golden_lstm_capped_and_tied() {
    let fixture = Fixture::gates();
    for (name, h, c) in [
        ("lstm", 0.102_828_386_406, 0.204_425_643_486),
        ("lstm-free", 0.102_828_386_406, 0.204_425_643_486),
        ("lstm-capped", 0.082_689_638_043, 0.163_580_582_166),
        ("lstm-tied", 0.082_689_638_043, 0.163_580_582_166),
    ] {
        fixture.assert_gives(&fixture.case(name), &STATE, &[("h", h), ("c", c)]);
    }
}

#[test]
fn golden_rhn_of_depth_two() {
    let fixture = Fixture::of(&[
        ("W_H", 0.3),
        ("R_H_1", 0.7),
        ("b_H_1", 0.03),
        ("W_T", 0.2),
        ("R_T_1", -0.6),
        ("b_T_1", -2.0),
        ("R_H_2", 0.4),
        ("b_H_2", 0.05),
        ("R_T_2", 0.5),
        ("b_T_2", -2.0),
    ]);
    fixture.assert_gives(
        &fixture.case("rhn-2"),
        &STATE[..1],
        &[("h", 0.471_132_649_322)],
    );
}

#[test]
fn golden_nas() {
    let mut fixture = Fixture::of(&[]);
    for k in 0..8 {
        let size = f64::from(k + 1);
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        fixture = fixture.with(&[
            (&format!("W_{k}"), 0.1 * size),
            (&format!("U_{k}"), sign * 0.05 * size),
        ]);
    }
    fixture.assert_gives(
        &fixture.case("nas"),
        &STATE,
        &[("h", -0.092_932_752_567), ("c", -0.115_393_355_548)],
    );
}

#[test]
fn golden_mlstm_of_both_forms_and_mrnn() {
    let multiplicative = [("W_mx", 0.9), ("W_mh", 1.1)];
    let fixture = Fixture::gates().with(&multiplicative);
    for (name, h, c) in [
        ("mlstm", 0.102_086_175_151, 0.202_501_256_901),
        ("mlstm-krause", 0.128_993_453_856, 0.253_848_507_126),
    ] {
        fixture.assert_gives(&fixture.case(name), &STATE, &[("h", h), ("c", c)]);
    }
    let fixture = Fixture::of(&[("W", 0.3), ("U", 0.7), ("b", 0.03)]).with(&multiplicative);
    fixture.assert_gives(
        &fixture.case("mrnn"),
        &STATE[..1],
        &[("h", 0.589_239_317_439)],
    );
}

#[test]
fn golden_multiplicative_integration() {
    let fixture = Fixture::of(&[
        ("W", 0.3),
        ("U", 0.7),
        ("b", 0.03),
        ("alpha", 2.0),
        ("beta1", 0.5),
        ("beta2", 0.5),
    ]);
    fixture.assert_gives(
        &fixture.case("mi-rnn"),
        &STATE[..1],
        &[("h", 0.511_677_798_190)],
    );
    let mut fixture = Fixture::gates();
    for gate in ["i", "f", "z", "o"] {
        fixture = fixture.with(&[
            (&format!("alpha_{gate}"), 1.0),
            (&format!("beta1_{gate}"), 0.5),
            (&format!("beta2_{gate}"), 0.5),
        ]);
    }
    fixture.assert_gives(
        &fixture.case("mi-lstm"),
        &STATE,
        &[("h", 0.044_186_184_076), ("c", 0.094_284_359_178)],
    );
}

#[test]
fn golden_gru_of_both_forms() {
    let mut fixture = Fixture::of(&[("c_n", 0.06)]);
    for (part, (_, [w, u, b])) in ["r", "u", "n"].into_iter().zip(GATES) {
        fixture = fixture.with(&[
            (&format!("W_{part}"), w),
            (&format!("U_{part}"), u),
            (&format!("b_{part}"), b),
        ]);
    }
    for (name, h) in [
        ("gru-cho", 0.494_841_126_083),
        ("gru-cudnn", 0.508_561_550_064),
    ] {
        fixture.assert_gives(&fixture.case(name), &STATE[..1], &[("h", h)]);
    }
}

#[test]
fn golden_mogrifier_of_two_and_three_rounds() {
    let two = Fixture::gates().with(&[("Q_1", 0.2), ("q_1", 0.05), ("R_2", 0.3), ("r_2", -0.05)]);
    two.assert_gives(
        &two.case("mogrifier-2"),
        &STATE,
        &[("h", 0.117_877_377_765), ("c", 0.238_320_165_191)],
    );
    let three = two.with(&[("Q_3", -0.4), ("q_3", 0.02)]);
    three.assert_gives(
        &three.case("mogrifier-3"),
        &STATE,
        &[("h", 0.109_618_989_033), ("c", 0.226_195_411_522)],
    );
}

#[test]
fn golden_hyper_lstm() {
    let mut fixture = Fixture::gates();
    for gate in ["i", "f", "z", "o"] {
        fixture = fixture.with(&[
            (&format!("U_{gate}^"), 0.1),
            (&format!("b_{gate}^"), 0.0),
            (&format!("A_h_{gate}"), 0.4),
            (&format!("a_h_{gate}"), 1.0),
            (&format!("A_x_{gate}"), 0.5),
            (&format!("a_x_{gate}"), 1.0),
            (&format!("A_b_{gate}"), 0.6),
            (&format!("D_h_{gate}"), 0.7),
            (&format!("D_x_{gate}"), 0.8),
            (&format!("D_b_{gate}"), 0.9),
        ]);
        // It reads h, then x.
        fixture.0.insert(format!("W_{gate}^"), vec![0.2, 0.3]);
    }
    let state = [STATE[0], STATE[1], ("h^", 0.2), ("c^", 0.1)];
    fixture.assert_gives(
        &Case::hyper("hyper-lstm", false, false, [1, 1]),
        &state,
        &[
            ("h^", 0.175_741_084_233),
            ("h", 0.099_220_595_038),
            ("c", 0.183_864_899_964),
        ],
    );
}

#[test]
fn golden_adaptive_lstm() {
    let device = Device::flex();
    let row = |values: &[f64]| {
        let data = TensorData::new(values.to_vec(), [1, values.len()]);
        Tensor::<2>::from_data(data, &device)
    };
    let of_gates = |part: usize| GATES.map(|(_, numbers)| numbers[part]);
    let mut lstm = AdaptiveLstmConfig::new(1, 1, 1).init(&device);
    let cell = &mut lstm.layers[0];
    cell.weight_input = Param::from_tensor(row(&of_gates(0)));
    cell.weight_hidden = Param::from_tensor(row(&of_gates(1)));
    cell.bias = Some(Param::from_tensor(row(&of_gates(2)).squeeze_dim(0)));
    let diagonals = SubPolicies {
        input: Some(row(&[0.8])),
        hidden: Some(row(&[0.9])),
        input_product: Some(row(&[0.7, 0.6, 0.5, 0.4])),
        hidden_product: Some(row(&[0.3, 0.2, 0.1, -0.1])),
        bias: Some(row(&[0.5, 0.4, 0.3, 0.2])),
    };
    let [hidden, memory] = STATE.map(|(_, value)| row(&[value]));
    let state = MainState {
        hidden,
        cell: Some(memory),
    };
    let after = cell.adapt(row(&[X]), state, diagonals);
    let exact = adapted_by_the_equations();
    for (ours, exact, expected) in [
        (after.hidden, exact[0], -0.037_441_468_408),
        (after.cell.unwrap(), exact[1], -0.069_076_061_262),
    ] {
        assert!((exact - expected).abs() < 1e-9, "{exact} is not {expected}");
        let ours: f64 = ours.into_scalar();
        assert!((ours - expected).abs() < 1e-6, "{ours} is not {expected}");
    }
}

/// The step of [`golden_adaptive_lstm`] by eq. (5) of the paper: `u_s = D4 W D3 x + D2 V D1 h + D0 b`, in f64. Gives `h` and
/// `c`.
fn adapted_by_the_equations() -> [f64; 2] {
    let (d3, d1) = (0.8, 0.9);
    // D4, D2 and D0 of i, f, z, o.
    let diagonals = [
        [0.7, 0.3, 0.5],
        [0.6, 0.2, 0.4],
        [0.5, 0.1, 0.3],
        [0.4, -0.1, 0.2],
    ];
    let [h, c] = STATE.map(|(_, value)| value);
    let mut gates = GATES
        .iter()
        .zip(diagonals)
        .map(|((_, [w, v, b]), [d4, d2, d0])| d4 * w * d3 * X + d2 * v * d1 * h + d0 * b);
    let mut next = || gates.next().expect("four gates");
    let [i, f, z, o] = [next(), next(), next(), next()];
    let sigmoid = |u: f64| 1.0 / (1.0 + (-u).exp());
    let c = sigmoid(f) * c + sigmoid(i) * z.tanh();
    [sigmoid(o) * c.tanh(), c]
}
