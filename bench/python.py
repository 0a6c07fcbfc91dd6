"""How fast the layers of the Python package are, beside PyTorch's: in turns, in one process, on this machine.

    pip install ./python torch
    python3 bench/python.py                                  the whole grid, about an hour; writes results/bench-python.json
    python3 bench/python.py --hidden 128 --batch 20 --steps 35 --rounds 3 --no-compile --out /tmp/some.json

One layer whose input is as wide as its hidden state. `train` is forward and backward of a window with gradients of everything; `infer`
is forward alone, without gradients. `LSTM` stands beside `torch.nn.LSTM`, `AdaptiveLSTM` beside the same equations in ordinary PyTorch
(`execution="readable"`), both eager and under `torch.compile`. Each round times each of them once, one after the other, so that other
work on the machine meets all alike; the medians of the rounds count. A point whose window takes long has fewer calls a round.
What one call costs beside its window, at batch 1 and one step of 8 units, is measured too.
"""

import argparse
import json
import platform
import statistics
import subprocess
import time
from pathlib import Path

import torch
from torch import nn

from adaparam.torch import LSTM, AdaptiveLSTM

ROOT = Path(__file__).resolve().parent.parent
LATENT = 64
# Seconds that a measurement of a round should take at least.
LONG_ENOUGH = 0.05


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
    runs = {}
    for name, module in modules(hidden, compiled).items():
        run = action(module, x, what)
        try:
            run()
        except Exception as error:  # A compiler that gives up is a result too.
            print(f"  {name}: {type(error).__name__}: {error}")
            continue
        runs[name] = run, max(1, round(LONG_ENOUGH / max(seconds(run, 1), 1e-7)))
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (run, calls) in runs.items():
            times[name].append(seconds(run, calls))
    medians = {name: 1e3 * statistics.median(of) for name, of in times.items()}
    best = {name: 1e3 * min(of) for name, of in times.items()}
    return {
        "hidden": hidden,
        "batch": batch,
        "steps": steps,
        "what": what,
        "ms": {name: round(ms, 4) for name, ms in medians.items()},
        "ms_fastest": {name: round(ms, 4) for name, ms in best.items()},
        "times_nn_lstm": round(medians["nn.LSTM"] / medians["LSTM"], 3),
        "times_pytorch_alstm": round(medians["PyTorch aLSTM"] / medians["AdaptiveLSTM"], 3),
    }


def overhead():
    """Microseconds of a call without gradients, of one row and one step of 8 units."""
    found = {}
    x = torch.randn(1, 1, 8)
    for name, module in {"nn.LSTM": nn.LSTM(8, 8), "LSTM": LSTM(8, 8), "AdaptiveLSTM": AdaptiveLSTM(8, 8, 4)}.items():
        run = action(module, x, "infer")
        seconds(run, 200)
        found[name] = round(1e6 * statistics.median(seconds(run, 100) for _ in range(30)), 1)
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


def summary(rows):
    lines = {}
    for key in ("times_nn_lstm", "times_pytorch_alstm"):
        for what in ("train", "infer"):
            of = [row[key] for row in rows if row["what"] == what]
            if of:
                lines[f"{key}, {what}"] = {"median": round(statistics.median(of), 3), "least": min(of), "most": max(of)}
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, nargs="+", default=[128, 256, 650, 1150])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 20, 64])
    parser.add_argument("--steps", type=int, nargs="+", default=[35, 256])
    parser.add_argument("--what", choices=["train", "infer"], nargs="+", default=["train", "infer"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-compile", action="store_true", help="eager alone")
    parser.add_argument("--compile-steps", type=int, default=35, help="longest window that is compiled: unrolled loops take minutes")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench-python.json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    head = {
        "command": "python3 bench/python.py",
        "commit": commit(),
        "processor": processor(),
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        "latent": LATENT,
        "python": platform.python_version(),
        "pytorch": torch.__version__,
        "overhead_us": overhead(),
    }
    print(f"a call of one step, µs: {head['overhead_us']}")
    rows = []
    grid = [(h, b, s, w) for h in arguments.hidden for s in arguments.steps for b in arguments.batch for w in arguments.what]
    began = time.perf_counter()
    for index, (hidden, batch, steps, what) in enumerate(grid, 1):
        torch.compiler.reset()
        compiled = not arguments.no_compile and steps <= arguments.compile_steps
        row = point(hidden, batch, steps, what, arguments.rounds, compiled)
        rows.append(row)
        left = (time.perf_counter() - began) / index * (len(grid) - index) / 60
        print(
            f"{index}/{len(grid)} hidden {hidden}, batch {batch}, {steps} steps, {what}: LSTM {row['times_nn_lstm']:.2f}x nn.LSTM, "
            f"AdaptiveLSTM {row['times_pytorch_alstm']:.2f}x PyTorch; about {left:.0f} min left",
            flush=True,
        )
        # Whole after every point: an hour's work is not lost with the last one.
        record = {**head, "summary": summary(rows), "rows": rows}
        beside = arguments.out.with_suffix(".tmp")
        beside.write_text(json.dumps(record, indent=1) + "\n")
        beside.replace(arguments.out)
    print(json.dumps(summary(rows), indent=1))


if __name__ == "__main__":
    main()
