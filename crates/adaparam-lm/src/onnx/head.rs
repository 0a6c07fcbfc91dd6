use super::Parts;
use super::graph::{Graph, Value, signed};
use crate::config::ModelSpec;
use crate::head::MixtureSettings;

/// The scores of every word as the next one, `[B, V]`.
pub(super) fn scores(
    graph: &mut Graph,
    spec: &ModelSpec,
    parts: &Parts<'_>,
    embedding: &Value,
    output: &Value,
) -> Value {
    let weight = parts.of_head("weight").map(|weight| weight.constant(graph));
    let weight = weight.as_ref().unwrap_or(embedding);
    let bias = parts.of_head("bias").map(|bias| bias.constant(graph));
    match spec.head.get::<MixtureSettings>() {
        None => graph.product_of_rows(output, weight, bias.as_ref()),
        Some(settings) => mixture(graph, &settings, parts, [output, weight], bias.as_ref()),
    }
}

/// `ln Σ_k π_k softmax(weight · e_k + bias)`.
fn mixture(
    graph: &mut Graph,
    settings: &MixtureSettings,
    parts: &Parts<'_>,
    [output, weight]: [&Value; 2],
    bias: Option<&Value>,
) -> Value {
    let own = |graph: &mut Graph, path: &str| {
        let weight = parts.of_head(path);
        weight
            .unwrap_or_else(|| panic!("{path} is a parameter of a mixture"))
            .constant(graph)
    };
    let [prior, latent, latent_bias] =
        ["prior", "latent", "latent_bias"].map(|path| own(graph, path));
    let experts = signed(settings.experts);
    let prior = graph.product_of_rows(output, &prior, None); // [B, K]
    let prior = graph.log_softmax(&prior);
    let prior = graph.reshape(&prior, &[0, experts, 1]);
    let latent = graph.product_of_rows(output, &latent, Some(&latent_bias));
    let latent = graph.tanh(&latent); // [B, K E]
    let width = parts
        .of_head("weight")
        .map_or(parts.embedding.shape[1], |own| own.shape[1]);
    let latent = graph.reshape(&latent, &[-1, signed(width)]); // [B K, E]
    let each = graph.product_of_rows(&latent, weight, bias);
    let each = graph.log_softmax(&each);
    let vocabulary = signed(parts.embedding.shape[0]);
    let each = graph.reshape(&each, &[-1, experts, vocabulary]); // [B, K, V]
    let joint = graph.add(&each, &prior);
    graph.log_sum_exp(&joint)
}
