"""How long a window of each cell takes, forward and backward: adaparam against PyTorch eager, in turns on one machine.

    pip install torch
    cargo build --release --workspace --example cell_speed
    python3 bench/cells.py [--rounds 5]

A layer of 650 units, 20 rows, 35 steps. Each cell is written here as one would write it in PyTorch: the products with the
whole input before the loop where the cell allows it, one product for all gates in the loop. `lstm` and `gru` are cells too,
not cuDNN's or oneDNN's whole layers. Both sides use every core. The medians of the rounds count. Writes
results/bench-cells.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

import torch
from feed_forward import commit, processor
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target" / "release" / "examples" / "cell_speed"
HIDDEN, BATCH, STEPS, WINDOWS = 650, 20, 35, 7


def weight(*shape):
    return nn.Parameter(torch.randn(*shape) / shape[-1] ** 0.5)


class Cell(nn.Module):
    """Gates read `inputs(x)`, made for the whole window at once, and the state."""

    parts, memory = 1, False

    def __init__(self):
        super().__init__()
        self.w = weight(self.parts * HIDDEN, HIDDEN)
        self.u = weight(self.parts * HIDDEN, HIDDEN)
        self.b = nn.Parameter(torch.zeros(self.parts * HIDDEN))

    def inputs(self, x):
        return nn.functional.linear(x, self.w, self.b)

    def hidden(self, h):
        return nn.functional.linear(h, self.u)

    def forward(self, x):
        zeros = torch.zeros(BATCH, HIDDEN)
        state = (zeros, zeros) if self.memory else (zeros,)
        outputs = []
        for inputs in self.inputs(x):
            state = self.step(inputs, *state)
            outputs.append(state[0])
        return torch.stack(outputs)


def lstm_gates(u, c):
    i, f, z, o = u.chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
    return torch.sigmoid(o) * torch.tanh(c), c


class Rnn(Cell):
    def step(self, u, h):
        return (torch.tanh(u + self.hidden(h)),)


class Lstm(Cell):
    parts, memory = 4, True

    def step(self, u, h, c):
        return lstm_gates(u + self.hidden(h), c)


class Capped(Lstm):
    def step(self, u, h, c):
        i, f, z, o = (u + self.hidden(h)).chunk(4, -1)
        f = torch.sigmoid(f)
        c = f * c + torch.minimum(1 - f, torch.sigmoid(i)) * torch.tanh(z)
        return torch.sigmoid(o) * torch.tanh(c), c


class Gru(Cell):
    parts = 3

    def step(self, u, h):
        x_r, x_u, x_n = u.chunk(3, -1)
        h_r, h_u, h_n = self.hidden(h).chunk(3, -1)
        r, update = torch.sigmoid(x_r + h_r), torch.sigmoid(x_u + h_u)
        n = torch.tanh(x_n + r * h_n)
        return (n + update * (h - n),)


class Rhn(Cell):
    parts, depth = 2, 5

    def __init__(self):
        super().__init__()
        self.deeper = nn.ParameterList(weight(2 * HIDDEN, HIDDEN) for _ in range(self.depth - 1))
        self.biases = nn.ParameterList(torch.zeros(2 * HIDDEN) for _ in range(self.depth - 1))

    def step(self, u, s):
        layers = [(self.u, None), *zip(self.deeper, self.biases)]
        for depth, (matrix, bias) in enumerate(layers):
            pre = nn.functional.linear(s, matrix, bias)
            pre = pre + u if depth == 0 else pre
            h, t = pre.chunk(2, -1)
            s = s + torch.sigmoid(t) * (torch.tanh(h) - s)
        return (s,)


class Nas(Cell):
    parts, memory = 8, True

    def inputs(self, x):
        return nn.functional.linear(x, self.w)

    def step(self, u, h, c):
        x, m = u.chunk(8, -1), self.hidden(h).chunk(8, -1)
        sigmoid, tanh, relu = torch.sigmoid, torch.tanh, torch.relu
        p = tanh(sigmoid(x[0] + m[0]) * relu(x[1] + m[1]))
        q = tanh(sigmoid(x[2] + m[2]) + relu(x[3] * m[3]))
        r = tanh(tanh(x[4] + m[4]) * sigmoid(x[5] + m[5]))
        s = sigmoid(tanh(x[6] + m[6]) + sigmoid(x[7] + m[7]))
        c = tanh(p + c) * q
        return tanh(c * tanh(r + s)), c


class Mrnn(Cell):
    def __init__(self):
        super().__init__()
        self.w_m, self.u_m = weight(HIDDEN, HIDDEN), weight(HIDDEN, HIDDEN)

    def inputs(self, x):
        return torch.cat([super().inputs(x), nn.functional.linear(x, self.w_m)], -1)

    def step(self, u, h):
        u, factor = u.split([self.parts * HIDDEN, HIDDEN], -1)
        m = factor * nn.functional.linear(h, self.u_m)
        return (torch.tanh(u + self.hidden(m)),)


class Mlstm(Mrnn):
    parts, memory = 4, True

    def step(self, u, h, c):
        u, factor = u.split([self.parts * HIDDEN, HIDDEN], -1)
        m = factor * nn.functional.linear(h, self.u_m)
        return lstm_gates(u + self.hidden(m), c)


class Integrated(Cell):
    def __init__(self):
        super().__init__()
        values = (1.0, 0.5, 0.5)
        self.alpha, self.beta1, self.beta2 = (nn.Parameter(torch.full_like(self.b, v)) for v in values)

    def inputs(self, x):
        return nn.functional.linear(x, self.w)

    def integrated(self, wx, h):
        uh = self.hidden(h)
        return self.alpha * wx * uh + self.beta1 * uh + self.beta2 * wx + self.b


class MiRnn(Integrated):
    def step(self, u, h):
        return (torch.tanh(self.integrated(u, h)),)


class MiLstm(Integrated):
    parts, memory = 4, True

    def step(self, u, h, c):
        return lstm_gates(self.integrated(u, h), c)


class Mogrifier(Cell):
    parts, memory, rounds = 4, True, 5

    def __init__(self):
        super().__init__()
        self.q = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(self.rounds))

    def inputs(self, x):
        return x

    def step(self, x, h, c):
        for index, q in enumerate(self.q):
            if index % 2 == 0:
                x = 2 * torch.sigmoid(q(h)) * x
            else:
                h = 2 * torch.sigmoid(q(x)) * h
        return lstm_gates(nn.functional.linear(x, self.w, self.b) + self.hidden(h), c)


class MinGru(Cell):
    parts = 2

    def step(self, u, h):
        z, n = u.chunk(2, -1)
        return (h + torch.sigmoid(z) * (n - h),)


class MinLstm(Cell):
    parts = 3

    def step(self, u, h):
        f, i, n = u.chunk(3, -1)
        f, i = torch.sigmoid(f), torch.sigmoid(i)
        return (h + i / (f + i) * (n - h),)


class Slstm(Cell):
    parts = 4

    def forward(self, x):
        h, c, n = (torch.zeros(BATCH, HIDDEN) for _ in range(3))
        m = torch.full_like(h, -1e30)
        outputs = []
        for u in self.inputs(x):
            log_i, f, z, o = (u + self.hidden(h)).chunk(4, -1)
            kept = nn.functional.logsigmoid(f) + m
            m = torch.maximum(kept, log_i)
            i, f = torch.exp(log_i - m), torch.exp(kept - m)
            c, n = f * c + i * torch.tanh(z), f * n + i
            h = torch.sigmoid(o) * c / n
            outputs.append(h)
        return torch.stack(outputs)


class Adaptive(nn.Module):
    """A policy of the paper's kind around the gates of another cell: z = LSTM([x; h], z), pi = tanh(U z)."""

    latent = 100

    def __init__(self):
        super().__init__()
        wide = self.parts * HIDDEN
        self.policy = nn.LSTMCell(2 * HIDDEN, self.latent)
        self.widths = [HIDDEN, HIDDEN, wide, wide, wide]
        self.projection = weight(sum(self.widths), self.latent)
        self.w, self.u = weight(wide, HIDDEN), weight(wide, HIDDEN)
        self.b = nn.Parameter(torch.zeros(wide))

    def forward(self, x):
        h, z = torch.zeros(BATCH, HIDDEN), (torch.zeros(BATCH, self.latent),) * 2
        outputs = []
        for x in x:
            z = self.policy(torch.cat([x, h], 1), z)
            d = torch.tanh(nn.functional.linear(z[0], self.projection)).split(self.widths, 1)
            from_input = d[2] * nn.functional.linear(d[0] * x, self.w)
            from_hidden = d[3] * nn.functional.linear(d[1] * h, self.u)
            h = self.gates(from_input, from_hidden, d[4] * self.b, h)
            outputs.append(h)
        return torch.stack(outputs)


class AdaptiveRnn(Adaptive):
    parts = 1

    def gates(self, from_input, from_hidden, bias, h):
        return torch.tanh(from_input + from_hidden + bias)


class AdaptiveGru(Adaptive):
    parts = 3

    def gates(self, from_input, from_hidden, bias, h):
        x_r, x_u, x_n = (from_input + bias).chunk(3, -1)
        h_r, h_u, h_n = from_hidden.chunk(3, -1)
        r, update = torch.sigmoid(x_r + h_r), torch.sigmoid(x_u + h_u)
        n = torch.tanh(x_n + r * h_n)
        return n + update * (h - n)


class Sva(Adaptive):
    """Singular values adapted by the same policy: B_x D A_x x + B_h D A_h h + D b, in an LSTM."""

    parts, rank = 4, 64

    def __init__(self):
        super().__init__()
        wide = self.parts * HIDDEN
        self.widths = [self.rank, self.rank, wide]
        self.projection = weight(sum(self.widths), self.latent)
        self.w, self.u = weight(wide, self.rank), weight(wide, self.rank)
        self.inner_w, self.inner_u = weight(self.rank, HIDDEN), weight(self.rank, HIDDEN)

    def forward(self, x):
        h, c, z = torch.zeros(BATCH, HIDDEN), torch.zeros(BATCH, HIDDEN), (torch.zeros(BATCH, self.latent),) * 2
        outputs = []
        for x, wx in zip(x, nn.functional.linear(x, self.inner_w)):
            z = self.policy(torch.cat([x, h], 1), z)
            d = torch.tanh(nn.functional.linear(z[0], self.projection)).split(self.widths, 1)
            from_hidden = nn.functional.linear(d[1] * nn.functional.linear(h, self.inner_u), self.u)
            h, c = lstm_gates(nn.functional.linear(d[0] * wx, self.w) + from_hidden + d[2] * self.b, c)
            outputs.append(h)
        return torch.stack(outputs)


class HyperLstm(Cell):
    parts, hyper, embedding = 4, 128, 4

    def __init__(self):
        super().__init__()
        self.small = nn.LSTMCell(2 * HIDDEN, self.hyper)
        inner = 4 * self.embedding
        self.embeddings = nn.ModuleList(nn.Linear(self.hyper, inner, bias) for bias in (True, True, False))
        self.scales = nn.ParameterList(weight(4, self.embedding, HIDDEN) for _ in range(3))

    def scaled(self, number, hidden):
        z = self.embeddings[number](hidden).view(BATCH, 4, self.embedding).transpose(0, 1)
        return torch.bmm(z, self.scales[number]).transpose(0, 1).reshape(BATCH, 4 * HIDDEN)

    def forward(self, x):
        h, c = torch.zeros(BATCH, HIDDEN), torch.zeros(BATCH, HIDDEN)
        small = (torch.zeros(BATCH, self.hyper),) * 2
        outputs = []
        for x, wx in zip(x, nn.functional.linear(x, self.w)):
            small = self.small(torch.cat([h, x], 1), small)
            d_h, d_x, shift = (self.scaled(number, small[0]) for number in range(3))
            h, c = lstm_gates(d_h * self.hidden(h) + d_x * wx + shift + self.b, c)
            outputs.append(h)
        return torch.stack(outputs)


# Our name of the cell with its keys, and the one here.
CELLS = {
    "rnn": Rnn, "lstm": Lstm, "melis-lstm": Capped, "gru": Gru, "rhn:depth=5": Rhn, "nas": Nas, "mrnn": Mrnn, "mlstm": Mlstm,
    "mi-rnn": MiRnn, "mi-lstm": MiLstm, "mogrifier:rounds=5": Mogrifier, "min-gru": MinGru, "min-lstm": MinLstm, "slstm": Slstm,
    "adaptive-rnn": AdaptiveRnn, "adaptive-gru": AdaptiveGru, "sva-lstm": Sva, "hyper-lstm": HyperLstm,
}


def milliseconds(cell):
    x = torch.randn(STEPS, BATCH, HIDDEN, requires_grad=True)
    weights = torch.randn(STEPS, BATCH, HIDDEN)
    times = []
    for _ in range(WINDOWS):
        cell.zero_grad()
        x.grad = None
        start = time.perf_counter()
        (cell(x) * weights).sum().backward()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    rows = []
    with subprocess.Popen([str(PROGRAM)], **pipes) as ours:
        for name, kind in CELLS.items():
            theirs, times = kind(), {"adaparam": [], "pytorch": []}
            for _ in range(rounds):
                ours.stdin.write(name + "\n")
                ours.stdin.flush()
                times["adaparam"].append(float(ours.stdout.readline().split()[1]))
                times["pytorch"].append(milliseconds(theirs))
            medians = {side: statistics.median(all_) for side, all_ in times.items()}
            ratio = medians["pytorch"] / medians["adaparam"]
            rows.append({"cell": name, **medians, "times_as_fast": ratio, "rounds": times})
            print(f"{name:20} {medians['adaparam']:8.1f} ms {medians['pytorch']:8.1f} ms  {ratio:.2f}x", flush=True)
        ours.stdin.close()
    machine = f"{processor()}, {os.cpu_count()} cores"
    about = {"command": f"python3 bench/cells.py --rounds {rounds}", "commit": commit(), "machine": machine,
             "hidden": HIDDEN, "batch": BATCH, "steps": STEPS, "torch": torch.__version__,
             "threads": torch.get_num_threads()}
    (ROOT / "results" / "bench-cells.json").write_text(json.dumps({**about, "cells": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
