#!/usr/bin/env python3
"""What a training step costs on many ranks: a model, fitted to measurements on one machine.

    python3 bench/scale/model.py results/mpi/measurements.json            the tables of docs/scale.md
    python3 bench/scale/model.py FILE --bandwidth 5 --latency 10 --speed 16

`--bandwidth` is in GB/s that a rank sends and receives at once, `--latency` in microseconds for a message, `--speed`
in units of one thread of the machine that was measured.
"""

import argparse
import json

MODELS = {"17M": 17_197_800, "24M": None, "32M": None, "500M": 500_000_000}
PRESETS = {"ptb-17m": "17M", "ptb-24m": "24M", "wikitext-2-32m": "32M"}
RANKS = [1, 2, 4, 5, 10, 20]
MANY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
NETWORKS = {"10 Gbit/s Ethernet": (1.1, 50.0), "100 Gbit/s InfiniBand": (11.0, 2.0)}


def line(points):
    """Least squares: the constant and the slope."""
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return mean_y - slope * mean_x, slope


class Model:
    """A step of `c0 + c1 · columns` milliseconds of computing, `update` of the optimiser, and communication, for the 17M
    model; all grow with the number of parameters."""

    def __init__(self, record):
        alone = [(m["batch"], m["ms_per_step"] - optimiser(m)) for m in record["columns"]]
        self.c0, self.c1 = line(alone)
        self.update = optimiser(max(record["columns"], key=lambda m: m["batch"]))
        self.parameters = record["columns"][0]["parameters"]

    def compute(self, parameters, columns):
        return (self.c0 + self.c1 * columns) * parameters / self.parameters

    def step(self, parameters, ranks, columns, bandwidth, latency, speed=1.0):
        """Milliseconds; `columns` of each rank."""
        size = parameters / self.parameters
        local = (self.compute(parameters, columns) + self.update * size) / speed
        return local + communication(parameters, ranks, bandwidth, latency)


def optimiser(measurement):
    return next(p["ms"] for p in measurement["phases"] if p["phase"] == "optimiser")


def communication(parameters, ranks, bandwidth, latency):
    """Each number travels twice: to the rank that adds it, and from there to all."""
    bytes_sent = 2 * 4 * parameters * (ranks - 1) / ranks
    return bytes_sent / (bandwidth * 1e6) + 2 * (ranks - 1) * latency * 1e-3


def cells(values):
    return " | ".join(values)


def table(head, rows):
    print("| " + cells(head) + " |")
    print("|" + "---:|" * len(head))
    for row in rows:
        print("| " + cells(row) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record")
    parser.add_argument("--bandwidth", type=float)
    parser.add_argument("--latency", type=float, default=2.0)
    parser.add_argument("--speed", type=float, default=1.0)
    choices = parser.parse_args()
    with open(choices.record) as file:
        record = json.load(file)
    model = Model(record)
    for measurement in record["models"]:
        MODELS[PRESETS[measurement["preset"]]] = measurement["parameters"]
    networks = NETWORKS
    if choices.bandwidth:
        networks = {"as given": (choices.bandwidth, choices.latency)}

    print(f"compute of the 17M model: {model.c0:.0f} + {model.c1:.1f} · columns ms, update {model.update:.0f} ms\n")
    print("Other models, one thread, 20 columns: measured, and predicted from the 17M model by their parameters\n")
    table(
        ["model", "measured ms", "predicted ms"],
        [
            [PRESETS[m["preset"]], f"{m['ms_per_step']:.0f}", f"{model.step(m['parameters'], 1, 20, 1, 0):.0f}"]
            for m in record["models"]
        ],
    )

    two = next(m for m in record["ranks"] if m["ranks"] == 2)
    # What a rank sends in a step, in the time that it took, waiting included.
    bandwidth = two["sent_mb_per_step"] / 2 / two["communication_ms"]
    print(f"Here, between processes of one machine: {bandwidth:.1f} GB/s, from two ranks\n")
    rows = []
    one = dict(max(record["columns"], key=lambda m: m["batch"]), ranks=1)
    for m in [one, *record["ranks"]]:
        ranks = m["ranks"]
        cores = min(ranks, record["cores"])
        # More ranks than cores take turns.
        local = model.step(m["parameters"], 1, 20 // ranks, 1, 0) * ranks / cores
        predicted = local + communication(m["parameters"], ranks, bandwidth, 5.0)
        rows.append([str(ranks), f"{m['ms_per_step']:.0f}", f"{predicted:.0f}"])
    table(["ranks", "measured ms", "predicted ms"], rows)

    for network, (bandwidth, latency) in networks.items():
        print(f"A batch of 20 columns, {network} ({bandwidth} GB/s, {latency:.0f} µs): ms, and efficiency against one rank\n")
        rows = []
        for ranks in RANKS:
            row = [str(ranks)]
            for parameters in MODELS.values():
                step = model.step(parameters, ranks, 20 / ranks, bandwidth, latency, choices.speed)
                alone = model.step(parameters, 1, 20, bandwidth, latency, choices.speed)
                row.append(f"{step:.0f} ({alone / step / ranks:.2f})")
            rows.append(row)
        table(["ranks", *MODELS], rows)

        print(f"20 columns for each rank, {network}: ms, and efficiency\n")
        rows = []
        for ranks in MANY:
            row = [str(ranks), str(20 * ranks)]
            for parameters in MODELS.values():
                step = model.step(parameters, ranks, 20, bandwidth, latency, choices.speed)
                alone = model.step(parameters, 1, 20, bandwidth, latency, choices.speed)
                row.append(f"{step:.0f} ({alone / step:.2f})")
            rows.append(row)
        table(["ranks", "columns", *MODELS], rows)


if __name__ == "__main__":
    main()
