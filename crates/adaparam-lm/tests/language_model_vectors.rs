//! Training steps of a whole language model against golden numbers of PyTorch: loss, gradients, clipped Adam.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adaparam::recurrent::{AdaptiveLstmSettings, PolicyLayout};
use adaparam_data::text::Window;
use adaparam_lm::{
    CellChoice, Common, Machine, Means, ModelSpec, ParameterShape, TrainSpec, Weights,
};
use safetensors::{Dtype, SafeTensors};

const RELATIVE: f32 = 1e-5;
const ABSOLUTE: f32 = 1e-6;

/// The tensors of a golden file.
struct Golden {
    path: PathBuf,
    floats: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    ids: BTreeMap<String, (Vec<usize>, Vec<u32>)>,
}

impl Golden {
    fn read(path: PathBuf) -> Self {
        let bytes = std::fs::read(&path).unwrap();
        let (mut floats, mut ids) = (BTreeMap::new(), BTreeMap::new());
        for (name, view) in SafeTensors::deserialize(&bytes).unwrap().iter() {
            let (name, shape) = (name.to_owned(), view.shape().to_vec());
            match view.dtype() {
                Dtype::F32 => {
                    let chunks = view.data().as_chunks::<4>().0.iter();
                    let values = chunks.map(|chunk| f32::from_le_bytes(*chunk)).collect();
                    floats.insert(name, (shape, values));
                }
                Dtype::I64 => {
                    let chunks = view.data().as_chunks::<8>().0.iter();
                    let values = chunks.map(|chunk| i64::from_le_bytes(*chunk) as u32);
                    ids.insert(name, (shape, values.collect()));
                }
                other => panic!("{name} holds {other:?}"),
            }
        }
        Self { path, floats, ids }
    }

    fn shape(&self, name: &str) -> &[usize] {
        &self.floats[name].0
    }

    fn values(&self, name: &str) -> &[f32] {
        &self.floats[name].1
    }

    fn agree(&self, name: &str, ours: &[f32]) {
        let theirs = self.values(name);
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (our, their) in ours.iter().zip(theirs) {
            assert!(
                (our - their).abs() <= ABSOLUTE + RELATIVE * their.abs(),
                "{}: {name}: {our} is not {their}",
                self.path.display()
            );
        }
    }
}

fn check(path: PathBuf, layout: PolicyLayout) {
    let golden = Golden::read(path);
    let main = |l: usize, part: &str| format!("param.rnns.alstm_layers.{l}.{part}");
    let has = |name: &str| golden.floats.contains_key(name);
    let cell = AdaptiveLstmSettings {
        latent: golden.shape("param.rnns.adapt_layers.0.weight_hh")[1],
        bias: has(&main(0, "bias")),
        layout,
        ..AdaptiveLstmSettings::default()
    };
    let spec = ModelSpec {
        embedding: golden.shape("param.encoder.weight")[1],
        hidden: golden.shape(&main(0, "weight_hh"))[1],
        layers: (0..100).take_while(|&l| has(&main(l, "weight_hh"))).count(),
        cell: CellChoice::of(&cell),
        ..ModelSpec::default()
    };
    for means in [Means::Kernels, Means::Tensors] {
        three_steps(&golden, &spec, means);
    }
}

fn three_steps(golden: &Golden, spec: &ModelSpec, means: Means) {
    let machine = Machine {
        means,
        ..Machine::cpu(2)
    };
    let engine = &machine.engine;
    let vocabulary = golden.shape("param.encoder.weight")[0];
    let shapes = spec.parameter_shapes(vocabulary);
    let read = |shape: &ParameterShape| {
        let stored = golden.values(&format!("param.{}", shape.name)).to_vec();
        let values = shape.from_stored(stored);
        shape.clone().with(values)
    };
    let mut weights = Weights::new(shapes.iter().map(read).collect());
    let mut learner = machine.learner(spec, vocabulary);
    let (tokens, targets) = (&golden.ids["in.tokens"], &golden.ids["in.targets"]);
    let window = Window {
        start: 0,
        steps: tokens.0[0],
        batch: tokens.0[1],
        inputs: &tokens.1,
        targets: &targets.1,
    };
    let train = TrainSpec::default();
    let (mut kept, mut state) = (None, None);
    for step in 1..=3 {
        let at = |name: &str| format!("step{step}.{name}");
        state = Some(learner.learn(engine, &weights, &window, state, None));
        let loss = learner.losses().iter().sum::<f32>() / learner.losses().len() as f32;
        golden.agree(&at("loss"), &[loss]);
        // Where a gradient is nearly 0, this Adam takes a step that depends on its last bits, so that it is given
        // the golden gradients, which ours are compared with.
        let mut theirs = Vec::new();
        for (shape, ours) in shapes.iter().zip(learner.gradients()) {
            let name = at(&format!("grad.{}", shape.name));
            golden.agree(&name, &shape.to_stored(ours));
            theirs.push(shape.from_stored(golden.values(&name).to_vec()));
        }
        let theirs: Vec<&[f32]> = theirs.iter().map(Vec::as_slice).collect();
        let common = Common {
            clip: f64::from(golden.values(&at("clip"))[0]),
            ..train.common()
        };
        let mut adam = train.optimiser.settings().init(common, &weights);
        if let Some((slots, scalars)) = kept.take() {
            adam.restore(slots, scalars).unwrap();
        }
        let norm = adam.update(engine, &mut weights, &theirs, train.learning_rate);
        let slots = adam.slots().into_iter().cloned().collect();
        kept = Some((slots, adam.scalars()));
        golden.agree(&at("grad_norm"), &[norm as f32]);
        for (shape, weight) in shapes.iter().zip(&weights) {
            let name = at(&format!("param_after.{}", shape.name));
            golden.agree(&name, &shape.to_stored(&weight.values));
        }
    }
}

#[test]
fn training_steps_match_the_vectors_of_pytorch() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adaparam/tests/vectors");
    check(folder.join("lm_paper_f32.safetensors"), PolicyLayout::Paper);
    check(
        folder.join("lm_reference_f32.safetensors"),
        PolicyLayout::Released,
    );
}
