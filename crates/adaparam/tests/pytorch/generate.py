"""Makes the files beside it with PyTorch's own layers: `python generate.py`.

Each `NAME.safetensors` holds the `state_dict` of a module under `weights.`, an input, what the module gives for it, and
its final states. `NAME.pt` is the same `state_dict` as `torch.save` writes it.

`lstm_bfloat16.pt` has the numbers of `lstm.pt` rounded, and `tagger.pt` is a checkpoint as people keep them: the
`state_dict` of a larger model under a key, beside other things.
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
    torch.save(module.state_dict(), f"{name}.pt")
    return module


lstm = case("lstm", torch.nn.LSTM(4, 3, num_layers=2, batch_first=True), 4)
case("lstm_without_bias", torch.nn.LSTM(4, 3, bias=False, batch_first=True), 4)
case("lstm_bidirectional", torch.nn.LSTM(4, 3, num_layers=2, batch_first=True, bidirectional=True), 4)
case("lstm_projected", torch.nn.LSTM(4, 5, num_layers=2, batch_first=True, proj_size=2), 4)
case("gru", torch.nn.GRU(4, 3, num_layers=2, batch_first=True), 4)


class Tagger(torch.nn.Module):
    """Somebody's model: a bidirectional LSTM and a layer on top of it."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.output = torch.nn.Linear(6, 2)

    def forward(self, x):
        return self.output(self.lstm(x)[0])


tagger = Tagger()
x = torch.randn(3, 5, 4)
write("tagger", {"input": x, "output": tagger(x)})
torch.save({"epoch": 3, "model": tagger.state_dict()}, "tagger.pt")
torch.save(lstm.to(torch.bfloat16).state_dict(), "lstm_bfloat16.pt")

# Behind all others, whose numbers would be others otherwise.
pairs = {"num_layers": 2, "batch_first": True, "bidirectional": True}
case("lstm_bidirectional_projected", torch.nn.LSTM(4, 5, proj_size=2, **pairs), 4)
case("gru_bidirectional", torch.nn.GRU(4, 3, **pairs), 4)
