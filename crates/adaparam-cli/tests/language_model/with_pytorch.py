#!/usr/bin/env python3
"""Prints the loss of every predicted word of a text by a model that `adaparam export` wrote, computed with PyTorch.

    python3 with_pytorch.py FOLDER_OF_GENERATE_PY MODEL.safetensors TEXT
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, sys.argv[1])
import generate  # noqa: E402


def main():
    tensors, metadata = generate.read(pathlib.Path(sys.argv[2]))
    note = json.loads(metadata["adaparam"])
    ids = {word: number for number, word in enumerate(note["vocabulary"].split("\n")[:-1])}
    words = [word for line in open(sys.argv[3], encoding="utf-8") for word in line.split() + ["<eos>"]]
    text = torch.tensor([ids.get(word, ids.get("<unk>")) for word in words])
    x = tensors["encoder.weight"][text[:-1]].unsqueeze(1)  # [T, 1, E]
    n_layers = note["config"]["model"]["layers"]
    if note["config"]["model"]["cell"]["kind"] == "lstm":
        for layer in range(n_layers):
            weights = {name.split(".")[-1]: value for name, value in tensors.items() if name.startswith(f"rnns.{layer}.")}
            lstm = torch.nn.LSTM(weights["weight_ih_l0"].shape[1], weights["weight_hh_l0"].shape[1])
            lstm.load_state_dict(weights)
            x, _ = lstm(x)
    else:
        param = {name.removeprefix("rnns."): value for name, value in tensors.items() if name.startswith("rnns.")}
        x, _, _ = generate.unroll(param, x, generate.zero_state(param, 1), {}, "paper")
    logits = x.squeeze(1) @ tensors["encoder.weight"].T + tensors["decoder.bias"]
    losses = torch.nn.functional.cross_entropy(logits, text[1:], reduction="none")
    print("\n".join(f"{loss:.6f}" for loss in losses.tolist()))


with torch.no_grad():
    main()
