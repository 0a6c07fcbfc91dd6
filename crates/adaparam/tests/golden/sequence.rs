use adaparam::recurrent::{Execution, Masks, Recurrent};
use burn::tensor::{Device, Tensor};

use super::archive::Archive;
use super::released;
use super::verdict::Verdict;

/// Checks a stack over one sequence: outputs, final states, policies, and the gradient of `sum(output * R)` for
/// every parameter, the input and the initial states.
pub(crate) fn check(
    archive: &Archive,
    execution: Execution,
    verdict: &mut Verdict,
    device: &Device,
) {
    let mut lstm = released::load(archive, "", execution, device);
    let input = archive.tensor::<3>("in.x", device).require_grad();
    let [length, batch_size, _] = input.dims();
    let start = lstm.zero_state(batch_size, device).map_named(|path, _| {
        let name = format!("h0.{}", released::state_name(path));
        archive.tensor(&name, device).require_grad()
    });
    let masks = archive
        .has("mask.latent.l0")
        .then(|| read_masks(archive, &lstm, device));

    assert_eq!(
        lstm.runs_fused(&input, Some(&start), masks.as_ref()),
        released::expects_fused(archive, execution)
    );
    let (output, end) = lstm.forward(input.clone(), Some(start.clone()), masks.as_ref());
    let (_, _, policies) =
        lstm.forward_with_policies(input.clone(), Some(start.clone()), masks.as_ref());
    let loss = (output.clone() * archive.tensor("in.R", device)).sum();

    verdict.compare("out.output", &output, archive.get("out.output"));
    verdict.compare("out.loss", &loss, archive.get("out.loss"));
    for (name, tensor) in released::named_state(&end) {
        let name = format!("hT.{name}");
        verdict.compare(&name, tensor, archive.get(&name));
    }
    for (l, policy) in policies.into_iter().enumerate() {
        for t in 0..length {
            let name = format!("out.policy.t{t}.l{l}");
            let at_step: Tensor<2> = policy.clone().narrow(0, t, 1).squeeze_dim(0);
            verdict.compare(&name, &at_step, archive.get(&name));
        }
    }

    let gradients = loss.backward();
    for parameter in released::parameters(&mut lstm, "") {
        let name = format!("grad.{}", parameter.name());
        verdict.compare_numbers(&name, &parameter.gradient(&gradients), archive.get(&name));
    }
    let expected = "inputs and states have gradients";
    let of_input = input.grad(&gradients).expect(expected);
    verdict.compare("grad.in.x", &of_input, archive.get("grad.in.x"));
    for (name, tensor) in released::named_state(&start) {
        let name = format!("grad.h0.{name}");
        let gradient = tensor.grad(&gradients).expect(expected);
        verdict.compare(&name, &gradient, archive.get(&name));
    }
}

fn read_masks(archive: &Archive, lstm: &dyn Recurrent, device: &Device) -> Masks {
    let sites = lstm.sites();
    sites
        .iter()
        .fold(Masks::none(sites.clone()), |masks, site| {
            let part = match site.kind() {
                "hidden" => "main",
                other => other,
            };
            let l = site.layer().expect("a site is in a layer");
            let mask = archive.tensor(&format!("mask.{part}.l{l}"), device);
            masks.with(&site.name, Some(mask))
        })
}
