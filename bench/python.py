"""How fast the layers of the Python package are, beside PyTorch's: in turns, in one process, on this machine.

    pip install ./python torch
    python3 bench/python.py                                  the whole grid; writes results/bench-python.json
    python3 bench/python.py --hidden 128 --batch 20 --steps 35 --rounds 3 --no-compile --out some.json

One layer whose input is as wide as its hidden state. `train` is forward and backward of a window with gradients of everything; `infer`
is forward alone, without gradients. `LSTM` stands beside `torch.nn.LSTM`, `AdaptiveLSTM` beside the same equations in ordinary PyTorch
(`execution="readable"`), eager; then at some points (`--compile-...`) eager and under `torch.compile`, as to compile an unrolled loop
takes minutes. Each round times each of them once, one after the other, so that other work on the machine meets all alike; the medians of the
rounds count. A point whose round takes long has fewer rounds, never below three; the record says how many.
What one call costs beside its window, at batch 1 and one step of 8 units, is measured too: without a state, and with one handed on.

The record is written after every point. Called again with the same options, on the same code and machine, it goes on where it stopped;
`--fresh` starts anew.
"""

import argparse
import json
import platform
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import nn

from adaparam.torch import LSTM, AdaptiveLSTM

ROOT = Path(__file__).resolve().parent.parent
LATENT = 64
# Seconds that a measurement of a round should take at least.
LONG_ENOUGH = 0.05
# Seconds after which a point has no further rounds, if it has had three.
LONGEST = 15.0


# What is divided by what: PyTorch's time by ours.
PAIRS = {
    "times_nn_lstm": ("nn.LSTM", "LSTM"),
    "times_pytorch_alstm": ("PyTorch aLSTM", "AdaptiveLSTM"),
    "times_nn_lstm_compiled": ("nn.LSTM, compiled", "LSTM, compiled"),
    "times_pytorch_alstm_compiled": ("PyTorch aLSTM, compiled", "AdaptiveLSTM, compiled"),
}


def modules(hidden, compiled):
    """By name; the first of each kind is PyTorch's."""
    lstm = nn.LSTM(hidden, hidden)
    adaptive = AdaptiveLSTM(hidden, hidden, LATENT)
    readable = AdaptiveLSTM(hidden, hidden, LATENT, execution="readable")
    readable.load_state_dict(adaptive.state_dict())
    found = {
        "nn.LSTM": lstm,
        "LSTM": LSTM.from_torch(lstm),
        "PyTorch aLSTM": readable,
        "AdaptiveLSTM": adaptive,
    }
    if compiled:
        found |= {f"{name}, compiled": torch.compile(module) for name, module in list(found.items())}
    return found


def action(module, x, what):
    def train():
        for parameter in module.parameters():
            parameter.grad = None
        module(x)[0].sum().backward()

    @torch.no_grad()
    def infer():
        module(x)

    return {"train": train, "infer": infer}[what]


def seconds(run, calls):
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def point(hidden, batch, steps, what, rounds, compiled):
    """The medians of a point of the grid, in milliseconds."""
    x = torch.randn(steps, batch, hidden)
    runs, once = {}, 0.0
    for name, module in modules(hidden, compiled).items():
        run = action(module, x, what)
        try:
            run()
        except Exception as error:  # A compiler that gives up is a result too.
            print(f"  {name}: {type(error).__name__}: {error}")
            continue
        took = seconds(run, 1)
        runs[name] = run, max(1, round(LONG_ENOUGH / max(took, 1e-7)))
        once += max(took, LONG_ENOUGH)
    rounds = max(3, min(rounds, round(LONGEST / once)))
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (run, calls) in runs.items():
            times[name].append(seconds(run, calls))
    medians = {name: 1e3 * statistics.median(of) for name, of in times.items()}
    best = {name: 1e3 * min(of) for name, of in times.items()}
    ratios = {}
    for key, (theirs, ours) in PAIRS.items():
        if theirs in medians and ours in medians:
            ratios[key] = round(medians[theirs] / medians[ours], 3)
    return {
        "hidden": hidden,
        "batch": batch,
        "steps": steps,
        "what": what,
        "rounds": rounds,
        "ms": {name: round(ms, 4) for name, ms in medians.items()},
        "ms_fastest": {name: round(ms, 4) for name, ms in best.items()},
        **ratios,
    }


def overhead():
    """Microseconds of a call without gradients, of one row and one step of 8 units."""
    found = {}
    x = torch.randn(1, 1, 8)
    for name, module in {"nn.LSTM": nn.LSTM(8, 8), "LSTM": LSTM(8, 8), "AdaptiveLSTM": AdaptiveLSTM(8, 8, 4)}.items():
        state = tuple(part.detach() for part in module(x)[1])
        for how, given in (("", None), (", with a state", state)):

            @torch.no_grad()
            def run():
                module(x, given)

            seconds(run, 200)
            found[name + how] = round(1e6 * statistics.median(seconds(run, 100) for _ in range(30)), 1)
    return found


def commit():
    found = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return found.stdout.strip() or None


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def summary(rows, compiled):
    lines = {}
    for key in PAIRS:
        measured = compiled if key.endswith("_compiled") else rows
        for kinds, which in ((["train", "infer"], ""), (["train"], ", train"), (["infer"], ", infer")):
            of = [row[key] for row in measured if row["what"] in kinds and key in row]
            if of:
                found = {"points": len(of), "median": round(statistics.median(of), 3), "least": min(of), "most": max(of)}
                lines[key + which] = found
    return lines


def opened(path, head):
    """What an earlier call has measured under the same circumstances: points, and those that were also compiled."""
    try:
        record = json.loads(path.read_text())
    except OSError:
        return [], []
    differs = [key for key in head if record.get(key) != head[key]]
    if differs:
        raise SystemExit(f"{path}: was measured under other circumstances ({', '.join(differs)}); --fresh starts anew")
    return record["rows"], record["compiled"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, nargs="+", default=[128, 256, 650, 1150])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 20, 64])
    parser.add_argument("--steps", type=int, nargs="+", default=[35, 256])
    parser.add_argument("--what", choices=["train", "infer"], nargs="+", default=["train", "infer"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-compile", action="store_true", help="eager alone")
    parser.add_argument("--compile-steps", type=int, nargs="*", default=[35], help="windows that are also compiled")
    parser.add_argument("--compile-batch", type=int, nargs="*", default=[20], help="batches that are also compiled")
    parser.add_argument("--fresh", action="store_true", help="measure every point anew")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench-python.json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    head = {
        "commit": commit(),
        "processor": processor(),
        "threads": arguments.threads,
        "seed": 1,
        "latent": LATENT,
        "python": platform.python_version(),
        "pytorch": torch.__version__,
    }
    found = ([], []) if arguments.fresh else opened(arguments.out, head)
    overheads = overhead()
    print(f"a call of one step, µs: {overheads}")
    every = [(h, b, s, w) for h in arguments.hidden for s in arguments.steps for b in arguments.batch for w in arguments.what]
    grid = [(*one, False) for one in every]
    if not arguments.no_compile:
        grid += [(*one, True) for one in every if one[1] in arguments.compile_batch and one[2] in arguments.compile_steps]
    done = {(*place(row), compiled) for compiled, rows in enumerate(found) for row in rows}
    left = [one for one in grid if (*one[:4], int(one[4])) not in done]
    print(f"{len(grid)} points, {len(grid) - len(left)} of them measured before")
    began, passed = time.perf_counter(), 0.0
    for index, (hidden, batch, steps, what, compiled) in enumerate(left):
        torch.compiler.reset()
        row = point(hidden, batch, steps, what, arguments.rounds, compiled)
        found[compiled].append(row)
        passed += work(*left[index])
        minutes = (time.perf_counter() - began) / passed * sum(work(*one) for one in left[index + 1 :]) / 60
        ratios = ", ".join(f"{key} {row[key]:.2f}" for key in PAIRS if key in row)
        print(
            f"{index + 1}/{len(left)} hidden {hidden}, batch {batch}, {steps} steps, {what}: {ratios}; about {minutes:.0f} min left",
            flush=True,
        )
        # Whole after every point, so that none is lost with the next one.
        rows, others = (sorted(of, key=place) for of in found)
        command = shlex.join(["python3", "bench/python.py", *sys.argv[1:]])
        record = {"command": command, **head, "overhead_us": overheads, "summary": summary(rows, others), "rows": rows, "compiled": others}
        beside = arguments.out.with_suffix(".tmp")
        beside.write_text(json.dumps(record, indent=1) + "\n")
        beside.replace(arguments.out)
    print(json.dumps(summary(*found), indent=1))


def work(hidden, batch, steps, what, compiled):
    """About how long a point takes beside others: a round of it, what does not depend on its size, and a compiler."""
    size = (3 if what == "train" else 1) * steps * (batch + 8) * hidden**2 / 1e9
    return 1 + size + (100 if compiled else 0)


def place(row):
    return row["hidden"], row["batch"], row["steps"], row["what"]


if __name__ == "__main__":
    main()
