"""Compares our PyTorch models with the golden vectors that the Rust side is tested against.

    python3 bench/pytorch/check.py

Outputs, final states and every gradient of the adaptive LSTM, with and without dropout and bias, of one to three
layers; for the language model also the logits, the loss, the gradient's norm and the parameters after each of three
optimiser steps. Exits with 1 if any number differs by more than rounding.
"""

import sys
from pathlib import Path

import torch

from alstm import AdaptiveLstm
from language_model import Dropout, LanguageModel, detached, optimiser_of

VECTORS = Path(__file__).resolve().parents[2] / "crates" / "adaparam" / "tests" / "vectors"
sys.path.insert(0, str(VECTORS))

from generate import read  # noqa: E402

# Relative and absolute.
TOLERANCE = {torch.float32: (1e-5, 1e-6), torch.float64: (1e-12, 1e-14)}


def stored_name(name):
    """The released code's name of one of our parameters."""
    parts = name.split(".")
    if parts[0] == "recurrent":
        return "rnns." + stored_name(".".join(parts[1:]))
    if parts[0] != "layers":
        return {"embedding": "encoder.weight", "bias": "decoder.bias"}[name]
    _, layer, *rest = parts
    if rest[0] == "latent":
        return f"adapt_layers.{layer}.{rest[1]}"
    if rest[0] == "projection":
        return f"project_layers.{layer}.linear.weight"
    return f"alstm_layers.{layer}.{rest[0]}"


def load(module, tensors):
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(tensors["param." + stored_name(name)])


def gradients(module):
    return {stored_name(name): parameter.grad for name, parameter in module.named_parameters()}


def named_state(prefix, state):
    return {
        f"{prefix}.{part}.l{l}.{field}": tensor
        for l, layer in enumerate(state)
        for part, pair in zip(("latent", "main"), layer)
        for field, tensor in zip("hc", pair)
    }


def stack_of(meta, d_input, d_output, dtype):
    d_hidden = [int(meta["hidden"])] * (int(meta["layers"]) - 1) + [d_output]
    bias = meta.get("bias", "True") == "True"
    return AdaptiveLstm(d_input, d_hidden, int(meta["latent"]), bias).to(dtype)


def sequence_results(tensors, meta):
    x = tensors["in.x"].clone().requires_grad_()
    stack = stack_of(meta, x.shape[2], tensors["in.R"].shape[2], x.dtype)
    load(stack, tensors)
    layers = range(int(meta["layers"]))
    pair = lambda part, l: tuple(tensors[f"h0.{part}.l{l}.{field}"].clone().requires_grad_() for field in "hc")
    state = [(pair("latent", l), pair("main", l)) for l in layers]
    masks = [(tensors.get(f"mask.latent.l{l}"), tensors.get(f"mask.main.l{l}")) for l in layers]
    output, last = stack(x, state, masks)
    loss = (output * tensors["in.R"]).sum()
    loss.backward()
    results = {"out.output": output, "out.loss": loss.reshape(1), "grad.in.x": x.grad, **named_state("hT", last)}
    results |= {"grad." + name: tensor.grad for name, tensor in named_state("h0", state).items()}
    return results | {"grad." + name: gradient for name, gradient in gradients(stack).items()}


def language_model_results(tensors, meta):
    embedding = tensors["param.encoder.weight"]
    width = embedding.shape[1]
    nothing = Dropout(words=0.0, embedding=0.0, latent=0.0, hidden=0.0, output=0.0)
    model = LanguageModel(len(embedding), width, stack_of(meta, width, width, embedding.dtype), nothing).to(embedding.dtype)
    load(model, tensors)
    optimiser = optimiser_of(model, float(meta["lr"]))
    words, targets = tensors["in.tokens"], tensors["in.targets"]
    state = model.recurrent.zero_state(words.shape[1])
    results = {}
    for step, clip in enumerate(meta["clip"].split(","), 1):
        at = f"step{step}."
        with torch.no_grad():
            results[at + "logits"] = model(words, state)[0]
        loss, state = model.loss(words, targets, state)
        state = detached(state)
        optimiser.zero_grad()
        loss.backward()
        results |= {at + "loss": loss.reshape(1), **named_state(at + "hT", state)}
        results |= {at + "grad." + name: gradient.clone() for name, gradient in gradients(model).items()}
        results[at + "grad_norm"] = torch.nn.utils.clip_grad_norm_(model.parameters(), float(clip)).reshape(1)
        optimiser.step()
        for name, parameter in model.named_parameters():
            results[at + "param_after." + stored_name(name)] = parameter.detach().clone()
    return results


def agrees(path):
    tensors, meta = read(path)
    compute = language_model_results if meta["kind"] == "lm" else sequence_results
    results = compute(tensors, meta)
    wrong = []
    for name, tensor in results.items():
        relative, absolute = TOLERANCE[tensor.dtype]
        if not torch.allclose(tensor, tensors[name].reshape(tensor.shape), rtol=relative, atol=absolute):
            wrong.append(name)
    print(f"{path.name}: {len(results) - len(wrong)} of {len(results)} results agree", *wrong)
    return not wrong


def main():
    torch.set_num_threads(1)
    files = sorted(VECTORS.glob("*_paper_*.safetensors"))
    if not files:
        sys.exit(f"{VECTORS}: no golden vectors of the paper's layout")
    sys.exit(not all([agrees(path) for path in files]))


if __name__ == "__main__":
    main()
