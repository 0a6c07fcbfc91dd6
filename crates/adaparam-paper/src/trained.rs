//! Trained feed-forward networks as plain numbers, for pages to play with.
//!
//! A page computes such a network by itself, so it also carries what the library computed for some inputs: that is what the
//! page is tested with, and what it begins with.

use adaparam::AdaptiveFeedForward;
use adaparam::policy::{Policy, PolicyNetwork};
use adaparam_data::images::{ImageSet, PixelScaler};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::conventions::PolicyContext;
use crate::network::{
    ActivationKind, BiasKind, Layer, LayerSpec, Network, NetworkSpec, PolicySpec,
};

/// The file of an experiment's networks.
pub const NETWORKS: &str = "networks.json";

/// Numbers of a matrix that a person can look at one by one.
const SMALL: usize = 64;

/// A trained network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedNetwork {
    /// Its name.
    pub name: String,
    /// Number of trained parameters.
    pub params: usize,
    /// Its layers, from the input's side to the output's.
    pub layers: Vec<TrainedLayer>,
    /// What the library computed for some inputs.
    pub examples: Vec<Example>,
    /// For networks of images: what an image is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pixels: Option<Pixels>,
}

/// A layer: `φ( D(q) W(q-1) … W(1) D(1) x + D(0) b )`. Paper eq. (2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedLayer {
    /// `W(1), …, W(q-1)`.
    pub weights: Vec<Matrix>,
    /// `b`; zeros where there is none.
    pub bias: Numbers,
    /// `φ`.
    pub activation: ActivationKind,
    /// The width of `D(j)` for each `j` from 0 to `q`; 0 for the identity.
    pub diagonals: Vec<usize>,
    /// `π`: dense layers, one after the other; none where every diagonal is the identity.
    pub policy: Vec<DenseLayer>,
}

/// A layer of a policy: `φ(A c + a)`, or `φ(A c + a) ⊙ σ(G c + g)` with a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenseLayer {
    /// `A` and `a`.
    pub value: Affine,
    /// `φ`.
    pub activation: ActivationKind,
    /// `G` and `g`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Affine>,
}

/// `A c + a`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Affine {
    /// `A`.
    pub weight: Matrix,
    /// `a`; empty where there is none.
    pub bias: Numbers,
}

/// A matrix `[rows, columns]` that is multiplied from the left, `x W`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// Inputs.
    pub rows: usize,
    /// Outputs.
    pub columns: usize,
    /// Row after row.
    pub values: Numbers,
}

/// What the library computed for one input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The input, as the network takes it.
    pub input: Numbers,
    /// What it is, for an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<u8>,
    /// The output.
    pub output: Numbers,
    /// The adapted diagonals of the first layer, side by side; empty where it adapts none.
    pub diagonals: Numbers,
    /// The matrix that stands in for the first layer's own, one row per output; empty where it is large.
    pub effective: Numbers,
}

/// What an image is: a pixel of value `v` is read as `v · slope + offset`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pixels {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The largest value of a pixel.
    pub largest: u8,
    /// See above.
    pub slope: f32,
    /// See above.
    pub offset: f32,
    /// The mean of the first layer's diagonals over the test images.
    pub mean_diagonals: Numbers,
}

/// Numbers that are written as their bytes, so that each is read again to the last bit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbers(pub Vec<f32>);

impl Serialize for Numbers {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self
            .0
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD
            .decode(&text)
            .ok()
            .filter(|bytes| bytes.len().is_multiple_of(4));
        let bytes = bytes.ok_or_else(|| {
            serde::de::Error::custom("these are no numbers of 32 bits in base 64")
        })?;
        let (fours, _) = bytes.as_chunks::<4>();
        Ok(Self(
            fours.iter().map(|&four| f32::from_le_bytes(four)).collect(),
        ))
    }
}

impl TrainedNetwork {
    /// Reads what a file of networks holds, and checks that its sizes fit.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Vec<Self>, String> {
        let networks: Vec<Self> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for network in &networks {
            network.check()?;
        }
        Ok(networks)
    }

    fn check(&self) -> Result<(), String> {
        let fault = |what: &str| Err(format!("{}: {what}", self.name));
        if self.layers.is_empty() {
            return fault("has no layers");
        }
        let mut width = self.layers[0].weights.first().map_or(0, |first| first.rows);
        let d_input = width;
        for layer in &self.layers {
            for weight in &layer.weights {
                if weight.rows != width || weight.values.0.len() != weight.rows * weight.columns {
                    return fault("has matrices that do not fit each other");
                }
                width = weight.columns;
            }
            if layer.bias.0.len() != width || layer.diagonals.len() != layer.weights.len() + 2 {
                return fault("has a layer that does not fit itself");
            }
        }
        let is_finite = |numbers: &Numbers| numbers.0.iter().all(|number| number.is_finite());
        let weights = self.layers.iter().flat_map(|layer| &layer.weights);
        if !weights.map(|weight| &weight.values).all(is_finite) {
            return fault("has a weight that is not a finite number");
        }
        let fits =
            |example: &Example| example.input.0.len() == d_input && example.output.0.len() == width;
        if !self.examples.iter().all(fits) {
            return fault("has examples of other sizes");
        }
        Ok(())
    }

    /// A network, with what it gives for some inputs. None if its policies look at the input of the network, which a page does not
    /// compute.
    pub(crate) fn of(
        spec: &NetworkSpec,
        network: &Network,
        params: usize,
        inputs: &[(Vec<f32>, Option<u8>)],
        device: &Device,
    ) -> Option<Self> {
        if spec.conventions.context == PolicyContext::NetworkInput {
            return None;
        }
        let examples = inputs.iter().map(|(input, label)| {
            let x =
                Tensor::<2>::from_data(TensorData::new(input.clone(), [1, input.len()]), device);
            let (Layer::Static(first) | Layer::Adaptive(first)) = &network.layers[0];
            Example {
                input: Numbers(input.clone()),
                label: *label,
                output: numbers(network.forward(x.clone())),
                diagonals: first_diagonals(spec, network, x.clone()),
                effective: if first.d_input() * first.d_output() <= SMALL && !spec.starts_split() {
                    numbers(first.effective_weight(x))
                } else {
                    Numbers::default()
                },
            }
        });
        Some(Self {
            name: spec.name.clone(),
            params,
            layers: spec.trained_layers(network),
            examples: examples.collect(),
            pixels: None,
        })
    }

    /// The same for images: one of each class, and the means over all. None also if pixels are scaled differently from place to
    /// place.
    pub(crate) fn of_images(
        spec: &NetworkSpec,
        network: &Network,
        params: usize,
        (scaler, images): (&PixelScaler, &ImageSet),
        device: &Device,
    ) -> Option<Self> {
        let (slope, offset) = scaler.line()?;
        let one_of_each: Vec<usize> = (0..images.classes())
            .filter_map(|class| {
                images
                    .labels()
                    .iter()
                    .position(|&label| usize::from(label) == class)
            })
            .collect();
        let (pixels, labels) = scaler.batch(images, &one_of_each);
        let inputs = pixels.chunks(images.pixels_per_image()).zip(labels);
        let inputs: Vec<_> = inputs
            .map(|(input, label)| (input.to_vec(), Some(label)))
            .collect();
        let all: Vec<usize> = (0..images.len()).collect();
        let (pixels, _) = scaler.batch(images, &all);
        let x = TensorData::new(pixels, [images.len(), images.pixels_per_image()]);
        let x = Tensor::<2>::from_data(x, device);
        let adapted = first_diagonals(spec, network, x).0;
        let width = adapted.len() / images.len();
        let mean = |unit: usize| {
            let values = adapted.iter().skip(unit).step_by(width.max(1));
            (values.copied().map(f64::from).sum::<f64>() / images.len() as f64) as f32
        };
        let mut trained = Self::of(spec, network, params, &inputs, device)?;
        trained.pixels = Some(Pixels {
            width: images.width(),
            height: images.height(),
            largest: images.max_value(),
            slope,
            offset,
            mean_diagonals: Numbers((0..width).map(mean).collect()),
        });
        Some(trained)
    }
}

impl NetworkSpec {
    /// Whether a layer is two modules, its first matrix by itself and what is behind that, whose policy looks at what it gives.
    fn is_split(&self, layer: &LayerSpec) -> bool {
        self.conventions.context == PolicyContext::Projection
            && matches!(layer, LayerSpec::Sva { .. })
    }

    fn starts_split(&self) -> bool {
        self.layers
            .first()
            .is_some_and(|first| self.is_split(first))
    }

    fn trained_layers(&self, network: &Network) -> Vec<TrainedLayer> {
        let mut modules = network.layers.iter();
        let mut next = || modules.next().expect("a layer has its modules");
        let layers = self.layers.iter();
        layers
            .map(|spec| {
                if self.is_split(spec) {
                    spec.numbers_behind(next(), next())
                } else {
                    spec.numbers(next())
                }
            })
            .collect()
    }
}

impl LayerSpec {
    /// A layer whose first matrix is a module of its own: that matrix is the first layer of its policy, too.
    fn numbers_behind(&self, first: &Layer, behind: &Layer) -> TrainedLayer {
        let (Layer::Static(first) | Layer::Adaptive(first)) = first;
        let first = matrix(first.weights[0].val());
        let mut layer = self.numbers(behind);
        layer.weights.insert(0, first.clone());
        let projection = DenseLayer {
            value: Affine {
                weight: first,
                bias: Numbers::default(),
            },
            activation: ActivationKind::Identity,
            gate: None,
        };
        layer.policy.insert(0, projection);
        layer
    }

    fn numbers(&self, layer: &Layer) -> TrainedLayer {
        let (Layer::Static(layer) | Layer::Adaptive(layer)) = layer;
        let of_bias = |kind: BiasKind| match (&layer.bias, kind) {
            (Some(_), BiasKind::Adaptive) => self.width(),
            _ => 0,
        };
        let (activation, policy, diagonals) = match self {
            Self::Static { activation, .. } => (*activation, None, vec![0; 3]),
            Self::Io {
                activation,
                policy,
                bias,
                width,
            } => (
                *activation,
                Some(policy),
                vec![of_bias(*bias), layer.d_input(), *width],
            ),
            Self::Sva {
                activation,
                policy,
                bias,
                rank,
                ..
            } => (*activation, Some(policy), vec![of_bias(*bias), 0, *rank, 0]),
        };
        let network = layer.policy.as_ref();
        TrainedLayer {
            weights: layer
                .weights
                .iter()
                .map(|weight| matrix(weight.val()))
                .collect(),
            bias: match &layer.bias {
                Some(bias) => numbers(bias.val()),
                None => Numbers(vec![0.0; self.width()]),
            },
            activation,
            diagonals,
            policy: policy
                .zip(network)
                .map(|(spec, network)| spec.numbers(network))
                .unwrap_or_default(),
        }
    }
}

impl PolicySpec {
    fn numbers(&self, network: &PolicyNetwork) -> Vec<DenseLayer> {
        let dense = network.dense().unwrap_or_default();
        let last = dense.len().saturating_sub(1);
        let activation = |index: usize| match self {
            Self::Glu { .. } => ActivationKind::Identity,
            Self::Linear { squash, .. } => *squash,
            Self::Mlp { squash, .. } if index == last => *squash,
            Self::Mlp { activation, .. } => *activation,
        };
        let layers = dense
            .into_iter()
            .enumerate()
            .map(|(index, dense)| DenseLayer {
                value: affine(dense.value),
                activation: activation(index),
                gate: dense.gate.map(affine),
            });
        layers.collect()
    }
}

fn affine(linear: &Linear) -> Affine {
    Affine {
        weight: matrix(linear.weight.val()),
        bias: linear
            .bias
            .as_ref()
            .map(|bias| numbers(bias.val()))
            .unwrap_or_default(),
    }
}

fn matrix(tensor: Tensor<2>) -> Matrix {
    let [rows, columns] = tensor.dims();
    Matrix {
        rows,
        columns,
        values: numbers(tensor),
    }
}

fn numbers<const N: usize>(tensor: Tensor<N>) -> Numbers {
    Numbers(tensor.into_data().iter().collect())
}

/// The adapted diagonals of the first layer for a batch, side by side.
fn first_diagonals(spec: &NetworkSpec, network: &Network, x: Tensor<2>) -> Numbers {
    let (Layer::Static(first) | Layer::Adaptive(first)) = &network.layers[0];
    match network.layers.get(1) {
        Some(Layer::Static(behind) | Layer::Adaptive(behind)) if spec.starts_split() => {
            diagonals(behind, first.forward(x))
        }
        _ => diagonals(first, x),
    }
}

/// The adapted diagonals of a layer for a batch, side by side.
fn diagonals(layer: &AdaptiveFeedForward, x: Tensor<2>) -> Numbers {
    let of_layer = layer.diagonals(x);
    let parts: Vec<Tensor<2>> = (0..=layer.order())
        .filter_map(|j| of_layer.get(j).cloned())
        .collect();
    if parts.is_empty() {
        return Numbers::default();
    }
    numbers(Tensor::cat(parts, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::TailConfig;

    /// What a page does, in f64.
    fn forward(network: &TrainedNetwork, input: &[f32]) -> Vec<f64> {
        let product = |x: &[f64], matrix: &Matrix| -> Vec<f64> {
            let column = |k: usize| {
                let values = matrix.values.0.iter().skip(k).step_by(matrix.columns);
                x.iter().zip(values).map(|(x, &w)| x * f64::from(w)).sum()
            };
            (0..matrix.columns).map(column).collect()
        };
        let affine = |x: &[f64], affine: &Affine| -> Vec<f64> {
            let mut out = product(x, &affine.weight);
            for (out, &bias) in out.iter_mut().zip(&affine.bias.0) {
                *out += f64::from(bias);
            }
            out
        };
        let phi = |kind: ActivationKind, x: f64| match kind {
            ActivationKind::Identity => x,
            ActivationKind::Relu => x.max(0.0),
            ActivationKind::Tanh => x.tanh(),
            ActivationKind::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        };
        let mut x: Vec<f64> = input.iter().copied().map(f64::from).collect();
        for layer in &network.layers {
            let mut pi = x.clone();
            for dense in &layer.policy {
                let mut out = affine(&pi, &dense.value);
                for x in &mut out {
                    *x = phi(dense.activation, *x);
                }
                if let Some(gate) = &dense.gate {
                    let open = affine(&pi, gate);
                    let pairs = out.iter_mut().zip(open);
                    pairs.for_each(|(x, open)| *x *= phi(ActivationKind::Sigmoid, open));
                }
                pi = out;
            }
            let mut at = 0;
            let d: Vec<Option<Vec<f64>>> = layer
                .diagonals
                .iter()
                .map(|&width| {
                    at += width;
                    (width > 0).then(|| pi[at - width..at].to_vec())
                })
                .collect();
            let scale = |x: Vec<f64>, d: &Option<Vec<f64>>| match d {
                Some(d) => x.iter().zip(d).map(|(x, d)| x * d).collect(),
                None => x,
            };
            let mut out = scale(x, &d[1]);
            for (weight, d) in layer.weights.iter().zip(&d[2..]) {
                out = scale(product(&out, weight), d);
            }
            let bias = layer.bias.0.iter().copied().map(f64::from).collect();
            let sums = out.into_iter().zip(scale(bias, &d[0]));
            x = sums.map(|(x, b)| phi(layer.activation, x + b)).collect();
        }
        x
    }

    #[test]
    fn the_numbers_of_a_network_are_the_network() {
        let device = Device::flex();
        let specs = TailConfig::full(1).models.into_iter().flat_map(|model| {
            // Without a bias in the last layer, and that layer an adaptive one.
            let mut bare = model.network.clone();
            bare.conventions.last_bias = false;
            let mut shorter = bare.clone();
            shorter.layers.pop();
            let mut split = model.network.clone();
            split.conventions.context = PolicyContext::Projection;
            [model.network, bare, shorter, split]
        });
        for spec in specs {
            let network = spec.init(2, 3, &device);
            let inputs = [[0.5, -1.0], [2.0, 3.0]].map(|input: [f32; 2]| (input.to_vec(), None));
            let trained = TrainedNetwork::of(&spec, &network, 1, &inputs, &device).unwrap();
            for example in &trained.examples {
                let output = forward(&trained, &example.input.0);
                for (here, &there) in output.iter().zip(&example.output.0) {
                    let there = f64::from(there);
                    assert!(
                        (here - there).abs() <= 1e-5 * there.abs().max(1.0),
                        "{}: {here} for {there}",
                        trained.name
                    );
                }
            }
            // To the last bit, through a file.
            let text = serde_json::to_string(&[&trained]).unwrap();
            assert_eq!(TrainedNetwork::read(&text).unwrap(), [trained]);
        }
    }

    #[test]
    fn a_network_that_a_page_does_not_compute_has_no_numbers_for_it() {
        let device = Device::flex();
        let mut spec = TailConfig::full(1).models[0].network.clone();
        spec.conventions.context = PolicyContext::NetworkInput;
        let network = spec.init(2, 3, &device);
        let trained = TrainedNetwork::of(&spec, &network, 1, &[], &device);
        assert!(trained.is_none());
    }

    #[test]
    fn a_file_whose_sizes_do_not_fit_is_refused() {
        let device = Device::flex();
        let spec = &TailConfig::full(1).models[0].network;
        let network = spec.init(2, 3, &device);
        let inputs = [(vec![0.0; 2], None)];
        let trained = TrainedNetwork::of(spec, &network, 1, &inputs, &device).unwrap();
        let refused = |change: &dyn Fn(&mut TrainedNetwork)| {
            let mut broken = trained.clone();
            change(&mut broken);
            TrainedNetwork::read(&serde_json::to_string(&[broken]).unwrap()).unwrap_err()
        };
        assert!(refused(&|it| it.layers.clear()).contains("no layers"));
        assert!(refused(&|it| it.layers[0].weights[0].rows = 7).contains("do not fit"));
        assert!(refused(&|it| it.layers[0].weights[0].values.0[0] = f32::NAN).contains("finite"));
        assert!(refused(&|it| it.examples[0].input.0.clear()).contains("examples"));
        assert!(TrainedNetwork::read("[{}]").is_err());
    }
}
