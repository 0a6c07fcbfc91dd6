#!/usr/bin/env python3
"""Makes golden vectors for the adaptive LSTM with PyTorch, of any sizes, in the form that README.md describes.

    python3 generate.py FOLDER [--seed 0] [--input 5] [--hidden 7] [--output 6] [--latent 3] [--seq 4] [--batch 2] [--vocab 11]
    ADAPARAM_VECTORS=FOLDER cargo test -p adaparam vectors

    python3 generate.py --check FILE...

The second form computes the results of existing files once more from their parameters and inputs, and fails if any
number differs by more than rounding.
"""

import argparse
import json
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

DTYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64}
TOLERANCE = {torch.float32: (1e-5, 1e-6), torch.float64: (1e-12, 1e-14)}


def parts(layout, d_input, d_hidden, bias):
    """Start and end of the sub-policies of x, h, the two products and the bias."""
    sizes = [d_input, d_hidden, 4 * d_hidden, 4 * d_hidden] + [4 * d_hidden] * bias
    tiled = [sum(sizes[:k]) for k in range(len(sizes))]
    released = [0] + sizes[:-1]
    starts = tiled if layout == "paper" else released
    return [(start, start + size) for start, size in zip(starts, sizes)]


def gates(u, c):
    i, f, z, o = u.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
    return torch.sigmoid(o) * torch.tanh(c), c


def unroll(param, x, state, masks, layout):
    """Outputs, final state and policies of a stack; `param` maps the released code's names to tensors."""
    n_layers = len(state["main"])
    state = {part: [list(layer) for layer in layers] for part, layers in state.items()}
    outputs, policies = [], {}
    for t in range(x.shape[0]):
        below, z_below = x[t], state["latent"][-1][0]
        for l in range(n_layers):
            (z, z_cell), (h, c) = state["latent"][l], state["main"][l]
            summary = torch.cat([below, h] + ([z_below] if n_layers > 1 else []), 1)
            adapt = {name: param[f"adapt_layers.{l}.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
            u = F.linear(summary, adapt["weight_ih"], adapt["bias_ih"]) + F.linear(z, adapt["weight_hh"], adapt["bias_hh"])
            z, z_cell = gates(u, z_cell)
            z = z * masks.get(f"mask.latent.l{l}", 1.0)
            policy = torch.tanh(F.linear(z, param[f"project_layers.{l}.linear.weight"]))
            bias = param.get(f"alstm_layers.{l}.bias")
            d = [policy[:, a:b] for a, b in parts(layout, below.shape[1], h.shape[1], bias is not None)]
            u = d[2] * F.linear(d[0] * below, param[f"alstm_layers.{l}.weight_ih"])
            u = u + d[3] * F.linear(d[1] * h, param[f"alstm_layers.{l}.weight_hh"])
            if bias is not None:
                u = u + d[4] * bias
            output, c = gates(u, c)
            h = output * masks.get(f"mask.main.l{l}", 1.0)
            state["latent"][l], state["main"][l] = [z, z_cell], [h, c]
            policies[f"out.policy.t{t}.l{l}"] = policy
            below, z_below = h, z
        outputs.append(output)
    return torch.stack(outputs), state, policies


def named_state(prefix, state):
    return {
        f"{prefix}.{part}.l{l}.{field}": tensor
        for part, layers in state.items()
        for l, layer in enumerate(layers)
        for field, tensor in zip("hc", layer)
    }


def read_state(given, n_layers):
    return {
        part: [[given[f"h0.{part}.l{l}.{field}"] for field in "hc"] for l in range(n_layers)]
        for part in ("latent", "main")
    }


def zero_state(param, batch):
    n_layers = sum(name.startswith("alstm_layers") and name.endswith("weight_hh") for name in param)
    width = lambda name: param[name].shape[1]
    zeros = lambda name: [param[name].new_zeros(batch, width(name)) for _ in "hc"]
    return {
        "latent": [zeros(f"adapt_layers.{l}.weight_hh") for l in range(n_layers)],
        "main": [zeros(f"alstm_layers.{l}.weight_hh") for l in range(n_layers)],
    }


def sequence_results(given, meta):
    """Everything that a file about one sequence holds besides what it is given."""
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in given.items() if name.startswith(("param.", "h0.", "in.x"))}
    param = {name.removeprefix("param."): tensor for name, tensor in leaves.items() if name.startswith("param.")}
    n_layers = sum(name.startswith("h0.main") for name in given) // 2
    output, state, policies = unroll(param, leaves["in.x"], read_state(leaves, n_layers), given, meta["layout"])
    loss = (output * given["in.R"]).sum()
    loss.backward()
    results = {"out.output": output, "out.loss": loss.reshape(1), **policies, **named_state("hT", state)}
    for name, tensor in leaves.items():
        if tensor.grad is not None:
            results["grad." + name.removeprefix("param.")] = tensor.grad
    return results


def language_model_results(given, meta):
    """Everything that a file about a language model holds besides what it is given."""
    model = {name.removeprefix("param."): tensor.clone().requires_grad_() for name, tensor in given.items() if name.startswith("param.")}
    param = {name.removeprefix("rnns."): tensor for name, tensor in model.items() if name.startswith("rnns.")}
    state = zero_state(param, given["in.tokens"].shape[1])
    adam = torch.optim.Adam(
        model.values(),
        lr=float(meta["lr"]),
        betas=tuple(float(beta) for beta in meta["betas"].split(",")),
        eps=float(meta["eps"]),
        weight_decay=float(meta["weight_decay"]),
    )
    results = {}
    for step, clip in enumerate(meta["clip"].split(","), 1):
        at = f"step{step}."
        embedding = model["encoder.weight"]
        output, state, _ = unroll(param, F.embedding(given["in.tokens"], embedding), state, {}, meta["layout"])
        logits = F.linear(output, embedding, model["decoder.bias"])
        loss = F.cross_entropy(logits.flatten(0, 1), given["in.targets"])
        adam.zero_grad()
        loss.backward()
        results |= {at + "logits": logits, at + "loss": loss.reshape(1), **named_state(at + "hT", state)}
        results |= {at + "grad." + name: tensor.grad.clone() for name, tensor in model.items()}
        norm = torch.nn.utils.clip_grad_norm_(model.values(), float(clip))
        results |= {at + "grad_norm": norm.reshape(1), at + "clip": torch.full_like(norm, float(clip)).reshape(1)}
        adam.step()
        results |= {at + "param_after." + name: tensor.detach().clone() for name, tensor in model.items()}
        state = {part: [[tensor.detach() for tensor in layer] for layer in layers] for part, layers in state.items()}
    return results


def results_of(given, meta):
    compute = language_model_results if meta["kind"] == "lm" else sequence_results
    return {name: tensor.detach() for name, tensor in compute(given, meta).items()}


def draw(meta, dtype, seed):
    """Random parameters and inputs for a file."""
    generator = torch.Generator().manual_seed(seed)
    uniform = lambda *shape: (torch.rand(*shape, generator=generator, dtype=torch.float64) * 1.8 - 0.9).to(dtype)
    size = lambda key: int(meta[key])
    is_lm = meta["kind"] == "lm"
    n_layers, d_latent, batch = size("layers"), size("latent"), size("batch")
    d_input = size("embedding" if is_lm else "input")
    given = {}
    prefix = "param.rnns." if is_lm else "param."
    for l in range(n_layers):
        d_below = d_input if l == 0 else size("hidden")
        d_hidden = size("output") if l == n_layers - 1 else size("hidden")
        bias = is_lm or meta["bias"] == "True"
        d_summary = d_below + d_hidden + (d_latent if n_layers > 1 else 0)
        shapes = {
            f"adapt_layers.{l}.weight_ih": (4 * d_latent, d_summary),
            f"adapt_layers.{l}.weight_hh": (4 * d_latent, d_latent),
            f"adapt_layers.{l}.bias_ih": (4 * d_latent,),
            f"adapt_layers.{l}.bias_hh": (4 * d_latent,),
            f"project_layers.{l}.linear.weight": (d_below + (13 if bias else 9) * d_hidden, d_latent),
            f"alstm_layers.{l}.weight_ih": (4 * d_hidden, d_below),
            f"alstm_layers.{l}.weight_hh": (4 * d_hidden, d_hidden),
        }
        if bias:
            shapes[f"alstm_layers.{l}.bias"] = (4 * d_hidden,)
        given |= {prefix + name: uniform(*shape) for name, shape in shapes.items()}
        if is_lm:
            continue
        for part, width in (("latent", d_latent), ("main", d_hidden)):
            given |= {f"h0.{part}.l{l}.{field}": uniform(batch, width) for field in "hc"}
            if meta["dropout"] == "True":
                kept = torch.rand(batch, width, generator=generator) < 0.7
                given[f"mask.{part}.l{l}"] = kept.to(dtype) / 0.7
    if is_lm:
        words = lambda *shape: torch.randint(size("vocab"), shape, generator=generator)
        given |= {"in.tokens": words(size("seq"), batch), "in.targets": words(size("seq") * batch)}
        given |= {"param.encoder.weight": uniform(size("vocab"), d_input), "param.decoder.bias": uniform(size("vocab"))}
    else:
        given |= {"in.x": uniform(size("seq"), batch, d_input), "in.R": uniform(size("seq"), batch, size("output"))}
    return given


def write(path, tensors, meta):
    """The safetensors format: length of the header, header, numbers."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    header, blobs, offset = {"__metadata__": meta}, [], 0
    for name, tensor in sorted(tensors.items()):
        blob = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def read(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    meta = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(data[start:end]), dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, meta


def check(path):
    tensors, meta = read(path)
    given = {name: tensor for name, tensor in tensors.items() if name.startswith(("param.", "in.", "h0.", "mask."))}
    results = results_of(given, meta)
    wrong = []
    for name, tensor in results.items():
        relative, absolute = TOLERANCE[tensor.dtype]
        if name not in tensors or not torch.allclose(tensor, tensors[name], rtol=relative, atol=absolute):
            wrong.append(name)
    print(f"{path}: {len(results) - len(wrong)} of {len(results)} results agree", *wrong)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    for key, default in {"seed": 0, "input": 5, "hidden": 7, "output": 6, "latent": 3, "seq": 4, "batch": 2, "vocab": 11}.items():
        parser.add_argument(f"--{key}", type=int, default=default)
    arguments = parser.parse_args()
    if arguments.check:
        sys.exit(not all([check(path) for path in arguments.paths]))

    (folder,) = arguments.paths
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {key: str(getattr(arguments, key)) for key in ("input", "hidden", "output", "latent", "seq", "batch", "vocab")}
    plain = {**sizes, "layers": "2", "bias": "True", "dropout": "False"}
    training = {"tied": "True", "lr": "0.003", "betas": "0,0.999", "eps": "1e-09", "weight_decay": "1e-06", "clip": "5,0.1,5"}
    kinds = {
        "core": plain,
        "core1l": {**plain, "layers": "1"},
        "core3l": {**plain, "layers": "3"},
        "dropout": {**plain, "dropout": "True"},
        "nobias": {**plain, "bias": "False"},
        "lm": {**sizes, **training, "layers": "2", "embedding": sizes["input"], "output": sizes["input"]},
    }
    for kind, settings in kinds.items():
        for layout in ("paper", "reference"):
            for name, dtype in (("f32", torch.float32), ("f64", torch.float64)):
                meta = {**settings, "kind": kind, "layout": layout}
                given = draw(meta, dtype, arguments.seed)
                write(folder / f"{kind}_{layout}_{name}.safetensors", {**given, **results_of(given, meta)}, meta)


if __name__ == "__main__":
    main()
