use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmCell, AdaptiveLstmConfig, Execution, PolicyLatent, PolicyLayout,
    State,
};
use burn::module::Param;
use burn::tensor::{Device, Gradients, Tensor};

use super::archive::{Archive, FloatKind, Numbers};

/// A parameter under the name that it has in the released code, which stores matrices `[out, in]`.
pub(crate) enum Named<'a> {
    Transposed(String, &'a mut Param<Tensor<2>>),
    Matrix(String, &'a mut Param<Tensor<2>>),
    Vector(String, &'a mut Param<Tensor<1>>),
}

impl Named<'_> {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Transposed(name, _) | Self::Matrix(name, _) | Self::Vector(name, _) => name,
        }
    }

    pub(crate) fn set(&mut self, numbers: &Numbers, device: &Device) {
        match self {
            Self::Transposed(_, param) => {
                **param = Param::from_tensor(numbers.tensor::<2>(device).transpose());
            }
            Self::Matrix(_, param) => **param = Param::from_tensor(numbers.tensor(device)),
            Self::Vector(_, param) => **param = Param::from_tensor(numbers.tensor(device)),
        }
    }

    pub(crate) fn numbers(&self) -> Numbers {
        match self {
            Self::Transposed(_, param) => Numbers::of(&param.val().transpose()),
            Self::Matrix(_, param) => Numbers::of(&param.val()),
            Self::Vector(_, param) => Numbers::of(&param.val()),
        }
    }

    pub(crate) fn gradient(&self, gradients: &Gradients) -> Numbers {
        let expected = "every parameter has a gradient";
        match self {
            Self::Transposed(_, param) => {
                Numbers::of(&param.val().grad(gradients).expect(expected).transpose())
            }
            Self::Matrix(_, param) => Numbers::of(&param.val().grad(gradients).expect(expected)),
            Self::Vector(_, param) => Numbers::of(&param.val().grad(gradients).expect(expected)),
        }
    }
}

/// All parameters of a stack under the released code's names.
pub(crate) fn parameters<'a>(lstm: &'a mut AdaptiveLstm, prefix: &str) -> Vec<Named<'a>> {
    let layers = lstm.layers.iter_mut().enumerate();
    layers
        .flat_map(|(l, cell)| layer_parameters(cell, prefix, l))
        .collect()
}

fn layer_parameters<'a>(cell: &'a mut AdaptiveLstmCell, prefix: &str, l: usize) -> Vec<Named<'a>> {
    let PolicyLatent::Recurrent(latent) = &mut cell.latent else {
        panic!("the released code has recurrent policies only");
    };
    let adapt = |name: &str| format!("{prefix}adapt_layers.{l}.{name}");
    let main = |name: &str| format!("{prefix}alstm_layers.{l}.{name}");
    let mut named = vec![
        Named::Transposed(adapt("weight_ih"), &mut latent.weight_input),
        Named::Transposed(adapt("weight_hh"), &mut latent.weight_hidden),
        Named::Transposed(
            format!("{prefix}project_layers.{l}.linear.weight"),
            &mut cell.projection,
        ),
        Named::Transposed(main("weight_ih"), &mut cell.weight_input),
        Named::Transposed(main("weight_hh"), &mut cell.weight_hidden),
    ];
    let biases = [
        (adapt("bias_ih"), latent.bias.as_mut()),
        (adapt("bias_hh"), latent.bias_hidden.as_mut()),
        (main("bias"), cell.bias.as_mut()),
    ];
    named.extend(
        biases
            .into_iter()
            .filter_map(|(name, bias)| bias.map(|bias| Named::Vector(name, bias))),
    );
    named
}

/// A stack of the sizes and with the parameters of a file.
pub(crate) fn load(
    archive: &Archive,
    prefix: &str,
    execution: Execution,
    device: &Device,
) -> AdaptiveLstm {
    let at = |name: &str| archive.get(&format!("param.{prefix}{name}"));
    let n_layers = archive.count(&format!("param.{prefix}alstm_layers."), 0, ".weight_ih");
    let d_input = at("alstm_layers.0.weight_ih").shape[1];
    let d_hidden = at("alstm_layers.0.weight_hh").shape[1];
    let d_output = at(&format!("alstm_layers.{}.weight_hh", n_layers - 1)).shape[1];
    let d_latent = at("adapt_layers.0.weight_hh").shape[1];
    let layout = match archive.metadata("layout") {
        "paper" => PolicyLayout::Paper,
        "reference" => PolicyLayout::Released,
        other => panic!("layout {other} is neither paper nor reference"),
    };
    let mut lstm = AdaptiveLstmConfig::new(d_input, d_hidden, d_latent)
        .with_batch_first(false)
        .with_d_output(Some(d_output))
        .with_n_layers(n_layers)
        .with_bias(archive.has(&format!("param.{prefix}alstm_layers.0.bias")))
        .with_layout(layout)
        .with_execution(execution)
        .init(device);
    for mut parameter in parameters(&mut lstm, prefix) {
        let golden = archive.get(&format!("param.{}", parameter.name()));
        parameter.set(golden, device);
    }
    lstm
}

/// Whether windows of a file are to be one fused operation: those in f32, unless the readable version is asked for.
pub(crate) fn expects_fused(archive: &Archive, execution: Execution) -> bool {
    cfg!(feature = "kernels")
        && execution == Execution::Fused
        && archive.float_kind == FloatKind::F32
}

/// The files' name of a tensor of the state: `layers.0.latent.hidden` is their `latent.l0.h`.
pub(crate) fn state_name(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    let [_, l, part, field] = parts[..] else {
        panic!("{path} is no path to a tensor of the state");
    };
    format!("{part}.l{l}.{}", &field[..1])
}

/// The tensors of a state with the files' names.
pub(crate) fn named_state(state: &State) -> impl Iterator<Item = (String, &Tensor<2>)> {
    state
        .iter()
        .map(|(path, tensor)| (state_name(path), tensor))
}
