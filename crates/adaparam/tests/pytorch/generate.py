"""Makes the files beside it with PyTorch's own layers: `python generate.py`.

Each `NAME.safetensors` holds the `state_dict` of a module under `weights.`, an input, what the module gives for it, and
its final states.
"""

import json
import struct

import torch

torch.manual_seed(1)


def write(name, tensors):
    """A safetensors file, by hand: the package is not needed to make it."""
    head, data = {}, b""
    for key, tensor in sorted(tensors.items()):
        numbers = tensor.detach().contiguous().flatten().tolist()
        raw = struct.pack(f"<{len(numbers)}f", *numbers)
        head[key] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{name}.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def case(name, module, d_input):
    x = torch.randn(3, 5, d_input)
    output, state = module(x)
    states = state if isinstance(state, tuple) else (state,)
    tensors = {f"weights.{key}": value for key, value in module.state_dict().items()}
    tensors |= {"input": x, "output": output}
    tensors |= {f"state.{k}": value for k, value in enumerate(states)}
    write(name, tensors)
    return module


lstm = case("lstm", torch.nn.LSTM(4, 3, num_layers=2, batch_first=True), 4)
case("lstm_without_bias", torch.nn.LSTM(4, 3, bias=False, batch_first=True), 4)
case("lstm_bidirectional", torch.nn.LSTM(4, 3, num_layers=2, batch_first=True, bidirectional=True), 4)
case("lstm_projected", torch.nn.LSTM(4, 5, num_layers=2, batch_first=True, proj_size=2), 4)
case("gru", torch.nn.GRU(4, 3, num_layers=2, batch_first=True), 4)
