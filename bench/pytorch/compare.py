"""Speed and memory of the language models: adaparam against PyTorch, in one run on one machine.

    pip install torch
    cargo build --release
    python3 bench/pytorch/compare.py [--threads 2] [--rounds 5]

Each measurement is a fresh process, and training steps have dropout and the optimiser on both sides. In a round all sides
take turns (ours in f32, bf16 and, where a model only reads, int8; PyTorch in f32 and in its mixed precision of bf16), so
that whatever else the machine does meets all of them; the median of the rounds counts. Writes
results/bench-language-model.json.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ADAPARAM = ROOT / "target" / "release" / "adaparam"

LEARNS, READS = ("f32", "bf16"), ("f32", "bf16", "int8")
# Title; adaparam's command, preset and model; its precisions; PyTorch's command and preset.
CASES = [
    ("training step, 17M aLSTM", ("step", "ptb-17m", "alstm"), LEARNS, ("step", "ptb-17m")),
    ("training step, plain 20M LSTM", ("step", "ptb-17m", "lstm"), LEARNS, ("step", "ptb-lstm-20m")),
    ("training step, small aLSTM", ("step", "small", "alstm"), LEARNS, ("step", "small")),
    ("evaluation, 17M aLSTM", ("eval", "ptb-17m", "alstm"), READS, ("eval", "ptb-17m")),
    ("generation, 17M aLSTM", ("generate", "ptb-17m", "alstm"), READS, ("generate", "ptb-17m")),
]
EAGER, AUTOCAST = "f32", "bf16 autocast"

MEDIANS = ("ms_per_step", "words_per_s", "gflops", "fma_peak_gflops", "fraction_of_peak", "peak_rss_mb")


def adaparam(asked, precision, threads):
    what, preset, model = asked
    command = [str(ADAPARAM), "bench", what, "--preset", preset, "--model", model, "--precision", precision]
    return answer_of(command + ["--threads", str(threads), "--json"])


def pytorch(asked, precision, threads):
    what, preset = asked
    command = [sys.executable, str(HERE / "measure.py"), "--what", what, "--preset", preset, "--threads", str(threads)]
    return answer_of(command + (["--autocast"] if precision == AUTOCAST else []))


def answer_of(command):
    """The JSON object that a command prints, over one line or several."""
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if answer.returncode:
        sys.exit(f"{' '.join(command)}: exit code {answer.returncode}\n{answer.stderr.strip()}")
    try:
        return json.loads(answer.stdout)
    except json.JSONDecodeError as error:
        sys.exit(f"{' '.join(command)}: no JSON: {error}")


def medians(measurements):
    keys = [key for key in MEDIANS if key in measurements[0]]
    middle = {key: round(statistics.median(one[key] for one in measurements), 4) for key in keys}
    path = measurements[0].get("instructions")
    return middle | ({"path": path} if path else {})


def row(title, ours, theirs):
    """Each of our precisions against both of theirs, with the smallest and the largest ratio of a round."""
    ratios = {}
    for precision, mine in ours.items():
        for other, their in theirs.items():
            rounds = [b["ms_per_step"] / a["ms_per_step"] for a, b in zip(mine, their)]
            ratios[f"{precision} against {other}"] = {
                "median": round(statistics.median(rounds), 2),
                "rounds": [round(min(rounds), 2), round(max(rounds), 2)],
            }
    return {
        "what": title,
        "adaparam": {precision: medians(mine) for precision, mine in ours.items()},
        "pytorch": {precision: medians(their) for precision, their in theirs.items()},
        "times_faster": ratios,
    }


def milliseconds(side):
    return f"{side['ms_per_step']:.2f}" if side["ms_per_step"] < 10 else f"{side['ms_per_step']:,.0f}"


def table(rows):
    """As the README has it."""
    lines = [
        "| what | ours | ms | MB | PyTorch, f32, ms | times faster | PyTorch, bf16 autocast, ms | times faster |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for one in rows:
        eager, autocast = one["pytorch"][EAGER], one["pytorch"][AUTOCAST]
        for precision, mine in one["adaparam"].items():
            cells = [
                one["what"],
                f"`{mine['path']}`",
                milliseconds(mine),
                f"{mine['peak_rss_mb']:,.0f}",
                milliseconds(eager),
                f"{one['times_faster'][f'{precision} against {EAGER}']['median']:.2f}",
                milliseconds(autocast),
                f"{one['times_faster'][f'{precision} against {AUTOCAST}']['median']:.2f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if not ADAPARAM.exists():
        sys.exit(f"{ADAPARAM}: not there: run `cargo build --release` first")
    rows, answers = [], []
    for title, ours, precisions, theirs in CASES:
        mine = {precision: [] for precision in precisions}
        their = {EAGER: [], AUTOCAST: []}
        for number in range(1, arguments.rounds + 1):
            for precision in precisions:
                mine[precision].append(adaparam(ours, precision, arguments.threads))
            for precision in their:
                their[precision].append(pytorch(theirs, precision, arguments.threads))
            sides = [*mine.items(), *((f"PyTorch {name}", of) for name, of in their.items())]
            told = ", ".join(f"{name} {of[-1]['ms_per_step']:.2f} ms" for name, of in sides)
            print(f"round {number}: {title}: {told}", flush=True)
        rows.append(row(title, mine, their))
        answers += [{"side": "adaparam", "asked": " ".join([*ours, name]), "answers": of} for name, of in mine.items()]
        answers += [{"side": "pytorch", "asked": " ".join([*theirs, name]), "answers": of} for name, of in their.items()]
    record = {
        "command": f"python3 bench/pytorch/compare.py --threads {arguments.threads} --rounds {arguments.rounds}",
        "commit": commit(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "pytorch": next(one["answers"][0]["pytorch"] for one in answers if one["side"] == "pytorch"),
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        "rows": rows,
        "measurements": answers,
    }
    target = ROOT / "results" / "bench-language-model.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(table(rows))
    print(target)


if __name__ == "__main__":
    main()
