//! Cells by the names of the golden files: their equations, the layers, and which parameter is which.

use std::collections::BTreeMap;

use adaparam::recurrent::{
    AdaptiveGruSettings, AdaptiveRnnSettings, Execution, ForgetGate, GruForm, GruSettings,
    HyperLstmSettings, InputGate, LstmSettings, MelisLstmSettings, MiLstmSettings, MiRnnSettings,
    MinGruSettings, MinLstmSettings, MinimalCandidate, MlstmForm, MlstmSettings, MogrifierSettings,
    MrnnSettings, NasSettings, PolicyStart, Recurrent, RecurrentKind, RhnSettings, RnnSettings,
    SlstmSettings, StackOutput, StackSizes, State, SvaLstmSettings,
};
use burn::tensor::{Device, Tensor, TensorData};

use super::equations::{self, Step};
use super::given::{Given, Numbers, Sizes};

type Layers = Box<dyn Fn(StackSizes, &Device) -> Box<dyn Recurrent>>;

/// A cell with one choice of its keys.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) step: Step,
    layers: Layers,
    /// For each parameter of the layer, by its path in it, the names of its parts in the equations. A name that begins
    /// with `-` is of a part that stays 0.
    parameters: BTreeMap<String, Vec<String>>,
    /// A letter of the equations for each state of the layer, in its order.
    letters: &'static [&'static str],
}

const GATES: [&str; 4] = ["i", "f", "z", "o"];

/// `W_i W_f …`.
fn of_gates(letter: &str, gates: &[&str]) -> Vec<String> {
    gates
        .iter()
        .map(|gate| format!("{letter}_{gate}"))
        .collect()
}

/// Paths and names of the usual three.
fn usual(gates: &[&str]) -> Vec<(String, Vec<String>)> {
    [("weight_input", "W"), ("weight_hidden", "U"), ("bias", "b")]
        .map(|(path, letter)| (path.to_owned(), of_gates(letter, gates)))
        .to_vec()
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
    let pairs = pairs.iter();
    pairs
        .map(|(path, name)| ((*path).to_owned(), vec![(*name).to_owned()]))
        .collect()
}

fn within(module: &str, parameters: Vec<(String, Vec<String>)>) -> Vec<(String, Vec<String>)> {
    let all = parameters.into_iter();
    all.map(|(path, names)| (format!("{module}.{path}"), names))
        .collect()
}

/// The latent LSTM of a policy, whose names end in `^`, and what leads from it to the policy.
fn recurrent_policy() -> Vec<(String, Vec<String>)> {
    let hats = ["i^", "f^", "z^", "o^"];
    let mut latent = usual(&hats);
    latent.push(("bias_hidden".to_owned(), of_gates("c", &hats)));
    let mut parameters = within("latent", latent);
    parameters.extend(named(&[("projection", "P")]));
    parameters
}

const PLAIN: [(&str, &str); 3] = [("weight_input", "W"), ("weight_hidden", "U"), ("bias", "b")];
const MULTIPLICATIVE: [(&str, &str); 2] = [
    ("multiplicative.weight_input", "W_mx"),
    ("multiplicative.weight_hidden", "W_mh"),
];
const H: &[&str] = &["h"];
const HC: &[&str] = &["h", "c"];

impl Case {
    fn new(
        name: &str,
        kind: impl RecurrentKind,
        step: Step,
        letters: &'static [&'static str],
        parameters: Vec<(String, Vec<String>)>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            step,
            layers: Box::new(move |sizes, device| kind.init(sizes, device)),
            parameters: parameters.into_iter().collect(),
            letters,
        }
    }

    /// The cell of a name such as golden files have, where `has` tells its parameters.
    ///
    /// # Panics
    ///
    /// Panics if there is no such cell.
    pub(crate) fn named(name: &str, has: impl Fn(&str) -> bool) -> Self {
        Self::find(name, has).unwrap_or_else(|| panic!("no cell is called {name}"))
    }

    /// The same, if there is such a cell.
    pub(crate) fn find(name: &str, has: impl Fn(&str) -> bool) -> Option<Self> {
        let count = |name: &dyn Fn(usize) -> bool| (1..100).take_while(|i| name(*i)).count();
        let bias = has("b_f") || has("b_r") || has("b") || has("b_0");
        let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
        Some(match family.trim_end_matches('-') {
            "rnn" => Self::new(name, RnnSettings { bias }, equations::rnn, H, named(&PLAIN)),
            "lstm" => {
                let settings = LstmSettings {
                    bias,
                    ..LstmSettings::default()
                };
                Self::new(name, settings, equations::lstm, HC, usual(&GATES))
            }
            "lstm-capped" => Self::melis(name, InputGate::Capped, bias),
            "lstm-tied" => Self::melis(name, InputGate::Tied, bias),
            "lstm-free" => Self::melis(name, InputGate::Free, bias),
            "gru-cho" => Self::gru(name, GruForm::Cho, bias),
            "gru-cudnn" => Self::gru(name, GruForm::Cudnn, bias),
            "rhn" => Self::rhn(name, count(&|l| has(&format!("R_H_{l}")))),
            "nas" => {
                let parts = ["0", "1", "2", "3", "4", "5", "6", "7"];
                Self::new(
                    name,
                    NasSettings { bias },
                    equations::nas,
                    HC,
                    usual(&parts),
                )
            }
            "mrnn" => {
                let parameters = [named(&MULTIPLICATIVE), within("main", named(&PLAIN))];
                let settings = MrnnSettings { bias };
                Self::new(name, settings, equations::mrnn, H, parameters.concat())
            }
            "mlstm" => Self::mlstm(name, MlstmForm::Standard, bias),
            "mlstm-krause" => Self::mlstm(name, MlstmForm::Krause, bias),
            "mi-rnn" => Self::mi_rnn(name, bias),
            "mi-lstm" => Self::mi_lstm(name, bias),
            "mogrifier" => {
                let is_round = |i: usize| has(&format!("q_{i}")) || has(&format!("r_{i}"));
                let rounds = count(&is_round);
                Self::mogrifier(name, InputGate::Free, [rounds, 0], true)
            }
            _ => return None,
        })
    }

    fn melis(name: &str, input_gate: InputGate, bias: bool) -> Self {
        let settings = MelisLstmSettings {
            input_gate,
            output: StackOutput::Sum,
            bias,
        };
        let (step, gates): (Step, &[&str]) = match input_gate {
            InputGate::Free => (equations::lstm, &GATES),
            InputGate::Capped => (equations::capped_lstm, &GATES),
            InputGate::Tied => (equations::tied_lstm, &GATES[1..]),
        };
        Self::new(name, settings, step, HC, usual(gates))
    }

    fn gru(name: &str, form: GruForm, bias: bool) -> Self {
        let mut parameters = usual(&["r", "u", "n"]);
        let inner = ["-c_r", "-c_u", "c_n"].map(str::to_owned).to_vec();
        parameters.push(("bias_hidden".to_owned(), inner));
        let step = match form {
            GruForm::Cho => equations::gru_cho,
            GruForm::Cudnn => equations::gru_cudnn,
        };
        Self::new(name, GruSettings { form, bias }, step, H, parameters)
    }

    fn rhn(name: &str, depth: usize) -> Self {
        let parts = |letter: &str, end: &str| {
            let names = ["H", "T"].map(|part| format!("{letter}_{part}{end}"));
            names.to_vec()
        };
        let mut parameters = vec![("weight_input".to_owned(), parts("W", ""))];
        for l in 0..depth {
            let end = format!("_{}", l + 1);
            parameters.push((format!("weight_hidden.{l}"), parts("R", &end)));
            parameters.push((format!("bias.{l}"), parts("b", &end)));
        }
        let settings = RhnSettings {
            depth,
            ..RhnSettings::default()
        };
        Self::new(name, settings, equations::rhn, H, parameters)
    }

    fn mlstm(name: &str, form: MlstmForm, bias: bool) -> Self {
        let step = match form {
            MlstmForm::Standard => equations::mlstm,
            MlstmForm::Krause => equations::mlstm_krause,
        };
        let parameters = [named(&MULTIPLICATIVE), within("main", usual(&GATES))].concat();
        Self::new(name, MlstmSettings { form, bias }, step, HC, parameters)
    }

    fn mi_rnn(name: &str, bias: bool) -> Self {
        let settings = MiRnnSettings {
            bias,
            ..MiRnnSettings::default()
        };
        let mut parameters = named(&PLAIN);
        parameters.extend(named(&[
            ("alpha", "alpha"),
            ("beta_hidden", "beta1"),
            ("beta_input", "beta2"),
        ]));
        let parameters = within("integration", parameters);
        Self::new(name, settings, equations::mi_rnn, H, parameters)
    }

    fn mi_lstm(name: &str, bias: bool) -> Self {
        let settings = MiLstmSettings {
            bias,
            ..MiLstmSettings::default()
        };
        let mut parameters = usual(&GATES);
        for (path, letter) in [
            ("alpha", "alpha"),
            ("beta_hidden", "beta1"),
            ("beta_input", "beta2"),
        ] {
            parameters.push((path.to_owned(), of_gates(letter, &GATES)));
        }
        let parameters = within("integration", parameters);
        Self::new(name, settings, equations::mi_lstm, HC, parameters)
    }

    fn mogrifier(
        name: &str,
        input_gate: InputGate,
        [rounds, rank]: [usize; 2],
        bias: bool,
    ) -> Self {
        let (step, gates): (Step, &[&str]) = match input_gate {
            InputGate::Free => (equations::mogrifier, &GATES),
            InputGate::Capped => (equations::capped_mogrifier, &GATES),
            InputGate::Tied => (equations::tied_mogrifier, &GATES[1..]),
        };
        let mut parameters = within("main", usual(gates));
        for i in 0..rounds {
            let (letter, small) = if i % 2 == 0 { ("Q", "q") } else { ("R", "r") };
            let number = i + 1;
            let weight = format!("{letter}_{number}");
            let mut add = |path: &str, name: String| {
                parameters.push((format!("rounds.{i}.{path}"), vec![name]));
            };
            add("bias", format!("{small}_{number}"));
            if rank == 0 {
                add("weight", weight);
            } else {
                add("inner", format!("{weight}_inner"));
                add("weight", format!("{weight}_outer"));
            }
        }
        let settings = MogrifierSettings {
            rounds,
            rank,
            input_gate,
            bias,
            ..MogrifierSettings::default()
        };
        Self::new(name, settings, step, HC, parameters)
    }

    /// `plus_one` says that 1 is added to the forget gates.
    pub(crate) fn hyper(
        name: &str,
        layer_norm: bool,
        plus_one: bool,
        [hyper, embedding]: [usize; 2],
    ) -> Self {
        let hats = ["i^", "f^", "z^", "o^"];
        let mut parameters = usual(&GATES);
        parameters.extend(within("hyper", usual(&hats)));
        for (module, of) in [("scale_hidden", "h"), ("scale_input", "x"), ("shift", "b")] {
            for (path, letter) in [
                ("weight_embedding", "A"),
                ("bias_embedding", "a"),
                ("weight", "D"),
            ] {
                let names = of_gates(&format!("{letter}_{of}"), &GATES);
                parameters.push((format!("{module}.{path}"), names));
            }
        }
        for (module, gates, cell) in [("norm", GATES, "c"), ("hyper.norm", hats, "c^")] {
            for (path, letter) in [("gain", "gain"), ("bias", "shift")] {
                parameters.push((format!("{module}.gates.{path}"), of_gates(letter, &gates)));
                parameters.push((format!("{module}.cell.{path}"), of_gates(letter, &[cell])));
            }
        }
        let settings = HyperLstmSettings {
            hyper,
            embedding,
            layer_norm,
            forget_bias: if plus_one { 1.0 } else { 0.0 },
        };
        let step = if plus_one {
            equations::hyper_lstm_plus_one
        } else {
            equations::hyper_lstm
        };
        let letters = &["h", "c", "h^", "c^"];
        Self::new(name, settings, step, letters, parameters)
    }

    fn minimal(name: &str, candidate: MinimalCandidate, is_lstm: bool, bias: bool) -> Self {
        use MinimalCandidate::{Linear, Positive};
        if is_lstm {
            let step = match candidate {
                Linear => equations::min_lstm,
                Positive => equations::positive_min_lstm,
            };
            let settings = MinLstmSettings { candidate, bias };
            Self::new(name, settings, step, H, usual(&["f", "i", "n"]))
        } else {
            let step = match candidate {
                Linear => equations::min_gru,
                Positive => equations::positive_min_gru,
            };
            let settings = MinGruSettings { candidate, bias };
            Self::new(name, settings, step, H, usual(&["z", "n"]))
        }
    }

    pub(crate) fn slstm(name: &str, forget_gate: ForgetGate, bias: bool) -> Self {
        let step = match forget_gate {
            ForgetGate::Sigmoid => equations::slstm,
            ForgetGate::Exponential => equations::exponential_slstm,
        };
        let settings = SlstmSettings { forget_gate, bias };
        Self::new(name, settings, step, &["h", "c", "n", "m"], usual(&GATES))
    }

    /// A recurrent policy of singular values.
    pub(crate) fn sva(name: &str, policy_start: PolicyStart, bias: bool) -> Self {
        let mut parameters = recurrent_policy();
        parameters.extend(named(&[("input.inner", "A_x"), ("hidden.inner", "A_h")]));
        for (path, letter) in [
            ("input.outer", "B_x"),
            ("hidden.outer", "B_h"),
            ("bias", "b"),
        ] {
            parameters.push((path.to_owned(), of_gates(letter, &GATES)));
        }
        let settings = SvaLstmSettings {
            latent: 3,
            rank: 2,
            bias,
            policy_start,
        };
        let step = match policy_start {
            PolicyStart::Paper => equations::sva_lstm,
            PolicyStart::Identity => equations::sva_lstm_from_identity,
        };
        Self::new(name, settings, step, &["h", "c", "z", "c^"], parameters)
    }

    /// A recurrent policy around a GRU, or around a plain layer.
    pub(crate) fn adaptive(name: &str, is_gru: bool, policy_start: PolicyStart) -> Self {
        use PolicyStart::{Identity, Paper};
        let mut parameters = recurrent_policy();
        let (latent, letters) = (3, &["h", "z", "c^"]);
        if is_gru {
            parameters.extend(usual(&["r", "u", "n"]));
            let settings = AdaptiveGruSettings {
                latent,
                policy_start,
                ..AdaptiveGruSettings::default()
            };
            let step = match policy_start {
                Paper => equations::adaptive_gru,
                Identity => equations::adaptive_gru_from_identity,
            };
            Self::new(name, settings, step, letters, parameters)
        } else {
            parameters.extend(named(&PLAIN));
            let settings = AdaptiveRnnSettings {
                latent,
                policy_start,
                ..AdaptiveRnnSettings::default()
            };
            let step = match policy_start {
                Paper => equations::adaptive_rnn,
                Identity => equations::adaptive_rnn_from_identity,
            };
            Self::new(name, settings, step, letters, parameters)
        }
    }

    /// Every cell in every form.
    pub(crate) fn all() -> Vec<Self> {
        let plain = [
            "rnn",
            "lstm",
            "lstm-capped",
            "lstm-tied",
            "lstm-free",
            "gru-cho",
            "gru-cudnn",
            "nas",
            "mrnn",
            "mlstm",
            "mlstm-krause",
            "mi-rnn",
            "mi-lstm",
        ];
        let mut all = Vec::new();
        for name in plain {
            all.push(Self::named(name, |name| name.starts_with('b')));
            all.push(Self::named(name, |_| false));
        }
        for depth in [1, 2, 4] {
            all.push(Self::rhn(&format!("rhn-{depth}"), depth));
        }
        for gate in [InputGate::Free, InputGate::Capped, InputGate::Tied] {
            for [rounds, rank] in [[0, 0], [1, 0], [4, 0], [5, 0], [5, 2]] {
                let name = format!("mogrifier-{rounds}, rank {rank}, {gate:?}");
                all.push(Self::mogrifier(&name, gate, [rounds, rank], true));
            }
            let name = format!("mogrifier-5, rank 0, {gate:?}{}", told(false));
            all.push(Self::mogrifier(&name, gate, [5, 0], false));
        }
        for layer_norm in [false, true] {
            for plus_one in [false, true] {
                let name = format!("hyper-lstm, normalised: {layer_norm}, plus one: {plus_one}");
                all.push(Self::hyper(&name, layer_norm, plus_one, [3, 2]));
            }
        }
        for candidate in [MinimalCandidate::Linear, MinimalCandidate::Positive] {
            for is_lstm in [false, true] {
                for bias in [true, false] {
                    let name = format!("minimal, {candidate:?}, LSTM: {is_lstm}{}", told(bias));
                    all.push(Self::minimal(&name, candidate, is_lstm, bias));
                }
            }
        }
        for start in [PolicyStart::Paper, PolicyStart::Identity] {
            for is_gru in [false, true] {
                let name = format!("adaptive, {start:?}, GRU: {is_gru}");
                all.push(Self::adaptive(&name, is_gru, start));
            }
        }
        for start in [PolicyStart::Paper, PolicyStart::Identity] {
            for bias in [true, false] {
                all.push(Self::sva(
                    &format!("sva, {start:?}, bias: {bias}"),
                    start,
                    bias,
                ));
            }
        }
        for gate in [ForgetGate::Sigmoid, ForgetGate::Exponential] {
            for bias in [true, false] {
                let name = format!("slstm, {gate:?}{}", told(bias));
                all.push(Self::slstm(&name, gate, bias));
            }
        }
        all
    }

    pub(crate) fn letters(&self) -> &'static [&'static str] {
        self.letters
    }

    /// One layer.
    pub(crate) fn layer(&self, sizes: Sizes, device: &Device) -> Box<dyn Recurrent> {
        (self.layers)(StackSizes::new(sizes.input, sizes.hidden, 1), device)
    }

    /// The shape of every parameter of one layer, by its path in it.
    pub(crate) fn shapes(&self, sizes: Sizes) -> Vec<(String, Vec<usize>)> {
        let layer = self.layer(sizes, &Device::flex());
        let all = layer.parameter_shapes().into_iter();
        all.map(|(path, shape)| (in_layer(&path), shape)).collect()
    }

    /// The names of the parts of a parameter.
    pub(crate) fn names(&self, path: &str) -> &[String] {
        let names = self.parameters.get(path);
        names.unwrap_or_else(|| panic!("{}: the layer's {path} has no name", self.name))
    }

    pub(crate) fn state_widths(&self, sizes: Sizes) -> Vec<(String, usize)> {
        let states = self.layer(sizes, &Device::flex()).states();
        assert_eq!(states.len(), self.letters.len(), "{}", self.name);
        let widths = self.letters.iter().zip(states);
        widths
            .map(|(letter, slot)| ((*letter).to_owned(), slot.width))
            .collect()
    }

    /// Everything that the layer gives for `given`, in f32.
    pub(crate) fn by_the_layer(&self, given: &Given, execution: Execution) -> Numbers {
        let device = Device::flex().autodiff();
        let Sizes {
            input,
            hidden,
            steps,
            batch,
        } = given.sizes;
        let mut layer = self.layer(given.sizes, &device);
        layer.set_execution(execution);
        layer.set_parameters(&mut |path, shape| {
            let names = self.names(&in_layer(path));
            let values = to_layer(names, shape, given);
            let count = values.len();
            Some(Tensor::from_data(TensorData::new(values, [count]), &device))
        });
        let tensor = |values: &[f64], shape: Vec<usize>| TensorData::new(values.to_vec(), shape);
        let x = tensor(&given.input, vec![steps, batch, input]);
        let x = Tensor::<3>::from_data(x, &device).require_grad();
        let start: Vec<Tensor<2>> = self
            .letters
            .iter()
            .map(|letter| {
                let state = &given.states[*letter];
                let data = tensor(&state.values, vec![state.rows, state.columns]);
                Tensor::from_data(data, &device).require_grad()
            })
            .collect();
        let state = State::new(layer.states(), start.clone());
        let (output, end) = layer.unroll(x.clone(), Some(state), None);
        let cotangent = tensor(&given.cotangent, vec![steps, batch, hidden]);
        let loss = (output.clone() * Tensor::from_data(cotangent, &device)).sum();
        let gradients = loss.backward();

        let mut results = Numbers::new();
        results.insert("output".to_owned(), read(&output));
        let ends = self.letters.iter().zip(end.parts());
        for ((letter, end), start) in ends.zip(&start) {
            results.insert(format!("final.{letter}"), read(end));
            let gradient = start.grad(&gradients);
            let zeros = || vec![0.0; read(start).len()];
            let gradient = gradient.as_ref().map_or_else(zeros, read);
            results.insert(format!("grad.state.{letter}"), gradient);
        }
        let of_x = x.grad(&gradients).expect("the output depends on the input");
        results.insert("grad.input".to_owned(), read(&of_x));
        layer.visit_parameters(&mut |path, parameter| {
            let shape = parameter.shape();
            let gradient = parameter.gradient(&gradients);
            let zeros = || vec![0.0; shape.iter().product()];
            let gradient = gradient.as_ref().map_or_else(zeros, read);
            let names = self.names(&in_layer(path));
            for (name, part) in names.iter().zip(from_layer(&gradient, &shape, names.len())) {
                if !name.starts_with('-') {
                    results.insert(format!("grad.param.{name}"), part);
                }
            }
        });
        results
    }
}

/// What the name of a case says of its bias.
fn told(bias: bool) -> &'static str {
    if bias { "" } else { ", without a bias" }
}

fn in_layer(path: &str) -> String {
    path.trim_start_matches("layers.0.").to_owned()
}

fn read<const D: usize>(tensor: &Tensor<D>) -> Vec<f64> {
    tensor.try_to_vec_as().expect("floats can be read as f64")
}

/// The shape in the equations of each of the parts of a parameter: matrices are `[out, in]` there.
pub(crate) fn part_shape(shape: &[usize], parts: usize) -> [usize; 2] {
    match *shape {
        [width] => [1, width / parts],
        [rows, columns] => [columns / parts, rows],
        [_, rows, columns] => [columns, rows],
        _ => panic!("a parameter has one to three axes"),
    }
}

/// Where in a parameter of the layer, row after row, the entry of a part lies.
fn place(shape: &[usize], parts: usize, part: usize, row: usize, column: usize) -> usize {
    match *shape {
        [width] => part * (width / parts) + column,
        [_, columns] => column * columns + part * (columns / parts) + row,
        [_, rows, columns] => (part * rows + column) * columns + row,
        _ => panic!("a parameter has one to three axes"),
    }
}

fn to_layer(names: &[String], shape: &[usize], given: &Given) -> Vec<f64> {
    let mut values = vec![0.0; shape.iter().product()];
    let [rows, columns] = part_shape(shape, names.len());
    for (part, name) in names.iter().enumerate() {
        if name.starts_with('-') {
            continue;
        }
        let matrix = given.parameters.get(name);
        let matrix = matrix.unwrap_or_else(|| panic!("there is no parameter {name}"));
        assert_eq!([matrix.rows, matrix.columns], [rows, columns], "{name}");
        for row in 0..rows {
            for column in 0..columns {
                let at = place(shape, names.len(), part, row, column);
                values[at] = matrix.values[row * columns + column];
            }
        }
    }
    values
}

fn from_layer(values: &[f64], shape: &[usize], parts: usize) -> Vec<Vec<f64>> {
    let [rows, columns] = part_shape(shape, parts);
    let part = |part: usize| {
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        places
            .map(|(row, column)| values[place(shape, parts, part, row, column)])
            .collect()
    };
    (0..parts).map(part).collect()
}
