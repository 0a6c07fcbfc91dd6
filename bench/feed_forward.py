"""Training speed of the feed-forward networks: adaparam against PyTorch, in one run on one machine.

    pip install torch
    cargo build --release
    python3 bench/feed_forward.py

The two sides take turns, network by network, round by round; the median of the rounds counts. Each side is tried on
every core and on one, and its better time is taken. Both sides gather a batch, do the forward and backward pass and the
optimiser's step. Writes results/bench-feed-forward.json.
"""

import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
ADAPARAM = ROOT / "target" / "release" / "adaparam"
ROUNDS = 5
STEPS = {"tail": 1500, "mnist": 600}


class Sva(nn.Module):
    """phi(W2 D W1 x + D0 b), with a linear or a gated linear policy of x, or of W1 x."""

    def __init__(self, d_input, d_output, rank, policy, adaptive_bias, activation=None, bias=True, of_projection=False):
        super().__init__()
        self.w1 = nn.Linear(d_input, rank, bias=False)
        self.w2 = nn.Linear(rank, d_output, bias=False)
        nn.init.orthogonal_(self.w1.weight)
        nn.init.orthogonal_(self.w2.weight)
        self.bias = nn.Parameter(torch.zeros(d_output)) if bias else 0.0
        self.widths = [d_output, rank] if adaptive_bias else [rank]
        self.policy = policy(rank if of_projection else d_input, sum(self.widths))
        self.activation, self.of_projection = activation, of_projection

    def forward(self, x):
        projected = self.w1(x)
        parts = self.policy(projected if self.of_projection else x).split(self.widths, dim=-1)
        y = self.w2(projected * parts[-1])
        y = y + (parts[0] * self.bias if len(parts) == 2 else self.bias)
        return self.activation(y) if self.activation else y


class Glu(nn.Module):
    def __init__(self, d_input, d_output, hidden=()):
        super().__init__()
        widths = [d_input, *hidden, d_output]
        self.values = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.gates = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for value, gate in zip(self.values, self.gates):
            x = value(x) * torch.sigmoid(gate(x))
        return x


def stacked_glu(d_input, d_output):
    return Glu(d_input, d_output, (4,))


def baseline(d_input, width, d_output, activation):
    return nn.Sequential(
        nn.Linear(d_input, width), activation(), nn.Linear(width, width), activation(), nn.Linear(width, d_output)
    )


def tail_networks():
    def sva(rank, policy=Glu, adaptive_bias=True, activation=None):
        return Sva(2, 2, rank, policy, adaptive_bias, activation)

    return {
        "adaptive, rank 2": lambda: nn.Sequential(sva(2), nn.Linear(2, 1)),
        "adaptive, rank 3": lambda: nn.Sequential(sva(3), nn.Linear(2, 1)),
        "adaptive, rank 4": lambda: nn.Sequential(sva(4), nn.Linear(2, 1)),
        "baseline, tanh": lambda: baseline(2, 10, 1, nn.Tanh),
        "baseline, sigmoid": lambda: baseline(2, 10, 1, nn.Sigmoid),
        "baseline, ReLU": lambda: baseline(2, 10, 1, nn.ReLU),
        "adaptive, rank 3, ReLU behind it": lambda: nn.Sequential(sva(3, activation=torch.relu), nn.Linear(2, 1)),
        "adaptive, rank 4, two stacked GLUs": lambda: nn.Sequential(sva(4, stacked_glu, False), nn.Linear(2, 1)),
        "two adaptive layers, rank 2": lambda: nn.Sequential(sva(2, Glu, False), sva(2, Glu, False), nn.Linear(2, 1)),
    }


def mnist_networks():
    def sva(d_input, d_output, rank):
        return Sva(d_input, d_output, rank, nn.Linear, False, of_projection=True)

    def last(width):
        return nn.Linear(width, 10)

    hidden = lambda d_input: (nn.Linear(d_input, 100), nn.ReLU())
    return {
        "logistic regression": lambda: last(784),
        "3-layer feed-forward": lambda: nn.Sequential(*hidden(784), *hidden(100), *hidden(100), last(100)),
        "1-layer SVA, small": lambda: sva(784, 10, 10),
        "1-layer SVA, large": lambda: sva(784, 10, 110),
        "3-layer SVA": lambda: nn.Sequential(sva(784, 50, 78), sva(50, 50, 78), sva(50, 50, 78), last(50)),
    }


def parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


def pytorch_us_per_step(what, network, steps):
    if what == "tail":
        optimiser = torch.optim.Adam(network.parameters(), lr=0.003)
        data, targets = torch.randn(50 * 100, 2), torch.randn(50 * 100, 1)
        batch, objective = 50, nn.functional.mse_loss
    else:
        optimiser = torch.optim.SGD(network.parameters(), lr=0.001)
        data, targets = torch.randn(6000, 784), torch.randint(0, 10, (6000,))
        batch, objective = 128, nn.functional.cross_entropy
    order = torch.randperm(len(data))
    in_epoch = len(data) // batch
    intervals, interval = [], max(steps // 100, 1)
    then = None
    for step in range(steps):
        if step % interval == 0:
            now = time.perf_counter()
            if then is not None and step > steps // 10:
                intervals.append((now - then) / interval)
            then = now
        rows = order[(step % in_epoch) * batch :][:batch]
        loss = objective(network(data[rows]), targets[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return 1e6 * statistics.median(intervals)


def adaparam_us_per_step(what, model, steps, threads):
    command = [str(ADAPARAM), "bench", what, "--steps", str(steps), "--model", model, "--threads", str(threads), "--json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    row = next(row for row in rows if row["model"] == model)
    return row["us_per_step"], row["params"]


def commit():
    answer = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return answer.stdout.strip() or "unknown"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    if not ADAPARAM.exists():
        sys.exit(f"{ADAPARAM}: not there: run `cargo build --release` first")
    cores = torch.get_num_threads()
    rows = []
    for what, networks in (("tail", tail_networks()), ("mnist", mnist_networks())):
        for model, make in networks.items():
            ours, theirs = {cores: [], 1: []}, {cores: [], 1: []}
            for _ in range(ROUNDS):
                for threads, times in theirs.items():
                    microseconds, params = adaparam_us_per_step(what, model, STEPS[what], threads)
                    ours[threads].append(microseconds)
                    torch.set_num_threads(threads)
                    network = make()
                    if parameters(network) != params:
                        sys.exit(f"{model}: {parameters(network)} parameters in PyTorch, {params} in adaparam")
                    times.append(pytorch_us_per_step(what, network, STEPS[what]))
            medians = [{str(k): round(statistics.median(v), 1) for k, v in side.items()} for side in (ours, theirs)]
            ours, best = (min(side.values()) for side in medians)
            rows.append(
                {
                    "experiment": what,
                    "model": model,
                    "params": params,
                    "adaparam_us_per_step": medians[0],
                    "pytorch_us_per_step": medians[1],
                    "ratio": round(best / ours, 2),
                }
            )
            print(f"{what:6} {model:36} {ours:9.1f} us  {best:9.1f} us  x{rows[-1]['ratio']}", flush=True)
    record = {
        "command": "python3 bench/feed_forward.py",
        "commit": commit(),
        "machine": f"{processor()}, {cores} cores",
        "pytorch": torch.__version__,
        "rounds": ROUNDS,
        "rows": rows,
    }
    target = ROOT / "results" / "bench-feed-forward.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(target)


if __name__ == "__main__":
    main()
