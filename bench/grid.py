"""Two recurrent layers of many shapes: adaparam against PyTorch and Burn, in one run on one machine.

    pip install torch
    cargo build --release
    python3 bench/grid.py [--minutes 8] [--threads 2]

At every shape the sides take turns: our kernels in f32 and in bf16, PyTorch eager in f32 and under bf16 autocast, Burn's own
LSTM, and at four shapes PyTorch compiled. Ratios are of our kernels in f32, but for those that say `ours in bf16`. The plain LSTM stands against `nn.LSTM`, the adaptive one against bench/pytorch/alstm.py. A training
pass is forward and backward with the gradients of input and weights; inference is forward alone. A first window does not
count, unless it takes more than five seconds; then windows are repeated for 1.5 seconds, 2 to 15 times, and the median
counts.

Writes results/bench-grid.json after every shape. Started again with the same program, it goes on where it was; `--minutes`
ends it early. What would take PyTorch more than a minute under bf16 autocast, judged by smaller shapes, is left out and
said so.
"""

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "pytorch"))
from alstm import AdaptiveLstm  # noqa: E402

ADAPARAM = ROOT / "target" / "release" / "adaparam"
TARGET = ROOT / "results" / "bench-grid.json"
HIDDEN, BATCH, WINDOW = (128, 256, 650, 1150), (1, 20, 64), (35, 256)
COMPILED = {(128, 20, 35), (256, 64, 35), (650, 20, 35), (1150, 20, 35)}
LONG_ENOUGH, FEWEST, MOST, TOO_LONG = 1.5, 2, 15, 5.0
MOST_SECONDS = 60.0
# Our precisions, and the names of these sides.
OURS = {"f32": "adaparam", "bf16": "adaparam_bf16"}


def shapes():
    """All shapes, those with the least work first."""
    every = itertools.product(HIDDEN, BATCH, WINDOW)
    return sorted(every, key=lambda shape: shape[0] ** 2 * shape[1] * shape[2])


def repeated(work):
    start = time.perf_counter()
    work()
    first = time.perf_counter() - start
    if first > TOO_LONG:
        return [first]
    begin, times = time.perf_counter(), []
    while len(times) < FEWEST or (len(times) < MOST and time.perf_counter() - begin < LONG_ENOUGH):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def pytorch(model, shape, training, bf16, compiled=False):
    """Median milliseconds, and how many windows were measured."""
    hidden, batch, window = shape
    if model == "lstm":
        stack = nn.LSTM(hidden, hidden, num_layers=2)
        run = lambda x: stack(x)[0]
    else:
        stack = AdaptiveLstm(hidden, [hidden, hidden], hidden // 10)
        if compiled:
            for index, layer in enumerate(stack.layers):
                stack.layers[index] = torch.compile(layer)
        stack_state = [tuple(tuple(torch.zeros(batch, d) for _ in "hc") for d in (hidden // 10, hidden)) for _ in "12"]
        run = lambda x: stack(x, stack_state)[0]
    x = torch.randn(window, batch, hidden, requires_grad=training)
    d_output = torch.randn(window, batch, hidden)
    parameters = [x, *stack.parameters()]

    def work():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16), torch.set_grad_enabled(training):
            output = run(x)
        if training:
            for parameter in parameters:
                parameter.grad = None
            output.backward(d_output.to(output.dtype))

    if compiled:
        work()
    times = repeated(work)
    return {"ms": round(1e3 * statistics.median(times), 4), "repetitions": len(times)}


def adaparam(model, shape, training, side, threads, precision="f32"):
    hidden, batch, window = shape
    command = [str(ADAPARAM), "bench", "grid", "--json", "--model", model, "--side", side, "--threads", str(threads)]
    command += ["--hidden", str(hidden), "--batch", str(batch), "--window", str(window)]
    command += ["--pass", "training" if training else "inference", "--precision", precision]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if answer.returncode:
        sys.exit(f"{' '.join(command)}: exit code {answer.returncode}\n{answer.stderr.strip()}")
    row = json.loads(answer.stdout)[0]
    return {"ms": round(row["ms"], 4), "repetitions": row["repetitions"]}


class Bf16:
    """How much longer bf16 autocast takes than f32, by the largest shape so far."""

    def __init__(self):
        self.ratio = {}

    def measure(self, model, shape, training, f32):
        expected = f32["ms"] / 1e3 * self.ratio.get((model, training), 1.0)
        if expected * (FEWEST + 1) > MOST_SECONDS:
            return {"left_out": f"would take about {expected:.0f} s a window"}
        try:
            answer = pytorch(model, shape, training, True)
        except RuntimeError as error:
            return {"left_out": str(error).splitlines()[0]}
        self.learn(model, training, f32, answer)
        return answer

    def learn(self, model, training, f32, answer):
        if "ms" in answer:
            self.ratio[model, training] = answer["ms"] / f32["ms"]


def row_of(model, shape, training, threads, bf16):
    before = {precision: adaparam(model, shape, training, "kernels", threads, precision) for precision in OURS}
    sides = {}
    sides["pytorch"] = pytorch(model, shape, training, False)
    sides["pytorch_bf16"] = bf16.measure(model, shape, training, sides["pytorch"])
    if model == "lstm":
        sides["burn"] = adaparam(model, shape, training, "burn", threads)
    elif shape in COMPILED:
        sides["pytorch_compiled"] = pytorch(model, shape, training, False, compiled=True)
    # Ours before and after the others: the better of two neighbours would be luck, their mean is not.
    for precision, first in before.items():
        ours = [first["ms"], adaparam(model, shape, training, "kernels", threads, precision)["ms"]]
        sides[OURS[precision]] = {"ms": round(statistics.mean(ours), 4), "measured": ours}
    theirs = {side: answer["ms"] for side, answer in sides.items() if side not in OURS.values() and "ms" in answer}
    ratios = {side: round(ms / sides[OURS["f32"]]["ms"], 3) for side, ms in theirs.items()}
    of_bf16 = {side: ms for side, ms in theirs.items() if side in ("pytorch", "pytorch_bf16")}
    ratios |= {f"{side}, ours in bf16": round(ms / sides[OURS["bf16"]]["ms"], 3) for side, ms in of_bf16.items()}
    hidden, batch, window = shape
    return {
        "model": model,
        "pass": "training" if training else "inference",
        "hidden": hidden,
        "batch": batch,
        "window": window,
        "sides": sides,
        "ratios": ratios,
    }


def summary(rows):
    """Median and worst ratio for each stack, pass and side."""
    found = {}
    for row in rows:
        for side, ratio in row["ratios"].items():
            found.setdefault(f"{row['model']}, {row['pass']}, {side}", []).append(ratio)
    return {
        name: {"points": len(ratios), "median": round(statistics.median(ratios), 2), "worst": min(ratios), "best": max(ratios)}
        for name, ratios in found.items()
    }


def commit():
    answer = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return answer.stdout.strip() or "unknown"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def write(record):
    record["summary"] = summary(record["rows"])
    beside = TARGET.with_suffix(".tmp")
    beside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, TARGET)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, help="stop after so long; started again, it goes on")
    parser.add_argument("--pass", dest="only", choices=("training", "inference"), help="only this pass")
    parser.add_argument("--model", choices=("alstm", "lstm"), help="only this stack")
    arguments = parser.parse_args()
    if not ADAPARAM.exists():
        sys.exit(f"{ADAPARAM}: not there: run `cargo build --release` first")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    head = {
        "command": f"python3 bench/grid.py --threads {arguments.threads}",
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "pytorch": torch.__version__,
        "threads": arguments.threads,
        "seed": 0,
        "program": ADAPARAM.stat().st_mtime_ns,
    }
    record = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}
    if any(record.get(key) != value for key, value in head.items()):
        record = {**head, "commit": commit(), "rows": []}
    key = lambda row: (row["model"], row["pass"], row["hidden"], row["batch"], row["window"])
    done = {key(row) for row in record["rows"]}
    bf16 = Bf16()
    for row in record["rows"]:
        bf16.learn(row["model"], row["pass"] == "training", row["sides"]["pytorch"], row["sides"]["pytorch_bf16"])
    begin = time.monotonic()
    for training, shape, model in itertools.product((True, False), shapes(), ("alstm", "lstm")):
        name = "training" if training else "inference"
        if (model, name, *shape) in done or arguments.only not in (None, name) or arguments.model not in (None, model):
            continue
        if arguments.minutes is not None and time.monotonic() - begin > 60 * arguments.minutes:
            print("stopped; start it again to go on")
            break
        row = row_of(model, shape, training, arguments.threads, bf16)
        record["rows"].append(row)
        write(record)
        print(f"{model:6} {name:9} {shape[0]:5} x {shape[1]:3} x {shape[2]:4} {row['sides']['adaparam']['ms']:10.2f} ms  {row['ratios']}", flush=True)
    for name, ratios in record.get("summary", {}).items():
        print(f"{name:36} {ratios}")


if __name__ == "__main__":
    main()
