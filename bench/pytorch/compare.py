"""Speed and memory of the language models: adaparam against PyTorch, in one run on one machine.

    pip install torch
    cargo build --release
    python3 bench/pytorch/compare.py [--threads 2] [--rounds 3]

Each measurement is a fresh process, and training steps have dropout and the optimiser on both sides. In a round the two
sides take turns, so that whatever else the machine does meets both; the median of the rounds counts. Writes
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

# What both sides are asked for, in turn: adaparam's command, preset and model; PyTorch's command and preset.
PAIRS = [
    (("step", "ptb-17m", "alstm"), ("step", "ptb-17m")),
    (("step", "ptb-17m", "lstm"), ("step", "ptb-lstm-20m")),
    (("step", "small", "alstm"), ("step", "small")),
    (("eval", "ptb-17m", "alstm"), ("eval", "ptb-17m")),
    (("generate", "ptb-17m", "alstm"), ("generate", "ptb-17m")),
]

# Title, then which measurement of ours stands against which of theirs.
ROWS = [
    ("training step, 17M aLSTM", ("step", "ptb-17m", "alstm"), ("step", "ptb-17m")),
    ("the same against PyTorch's plain 20M LSTM", ("step", "ptb-17m", "alstm"), ("step", "ptb-lstm-20m")),
    ("training step, plain 20M LSTM", ("step", "ptb-17m", "lstm"), ("step", "ptb-lstm-20m")),
    ("training step, small aLSTM", ("step", "small", "alstm"), ("step", "small")),
    ("evaluation, 17M aLSTM", ("eval", "ptb-17m", "alstm"), ("eval", "ptb-17m")),
    ("generation, 17M aLSTM", ("generate", "ptb-17m", "alstm"), ("generate", "ptb-17m")),
]

MEDIANS = ("ms_per_step", "words_per_s", "gflops", "fma_peak_gflops", "fraction_of_peak", "peak_rss_mb")


def adaparam(what, preset, model, threads):
    command = [str(ADAPARAM), "bench", what, "--preset", preset, "--model", model, "--threads", str(threads), "--json"]
    return answer_of(command)


def pytorch(what, preset, threads):
    command = [sys.executable, str(HERE / "measure.py"), "--what", what, "--preset", preset, "--threads", str(threads)]
    return answer_of(command)


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
    return {key: round(statistics.median(one[key] for one in measurements), 4) for key in keys}


def row(title, ours, theirs):
    return {
        "what": title,
        "adaparam": ours,
        "pytorch": theirs,
        "speed_ratio": round(theirs["ms_per_step"] / ours["ms_per_step"], 2),
        "memory_ratio": round(theirs["peak_rss_mb"] / ours["peak_rss_mb"], 2),
    }


def table(rows):
    lines = [
        "| what | adaparam ms | PyTorch ms | times faster | adaparam words/s | of FMA peak | adaparam MB | PyTorch MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        ours, theirs = one["adaparam"], one["pytorch"]
        fraction = f"{ours['fraction_of_peak']:.2f}" if "fraction_of_peak" in ours else ""
        cells = [
            one["what"],
            f"{ours['ms_per_step']:.2f}",
            f"{theirs['ms_per_step']:.2f}",
            f"{one['speed_ratio']:.2f}",
            f"{ours['words_per_s']:.0f}",
            fraction,
            f"{ours['peak_rss_mb']:.0f}",
            f"{theirs['peak_rss_mb']:.0f}",
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
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if not ADAPARAM.exists():
        sys.exit(f"{ADAPARAM}: not there: run `cargo build --release` first")
    measured = {}
    for number in range(1, arguments.rounds + 1):
        for ours, theirs in PAIRS:
            measured.setdefault(ours, []).append(adaparam(*ours, arguments.threads))
            measured.setdefault(theirs, []).append(pytorch(*theirs, arguments.threads))
            milliseconds = [measured[side][-1]["ms_per_step"] for side in (ours, theirs)]
            print(f"round {number}: {' '.join(ours):26} {milliseconds[0]:9.2f} ms, PyTorch {milliseconds[1]:9.2f} ms", flush=True)
    rows = [row(title, medians(measured[ours]), medians(measured[theirs])) for title, ours, theirs in ROWS]
    record = {
        "command": f"python3 bench/pytorch/compare.py --threads {arguments.threads} --rounds {arguments.rounds}",
        "commit": commit(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "pytorch": measured[PAIRS[0][1]][0]["pytorch"],
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        "rows": rows,
        "measurements": [
            {"side": side, "asked": " ".join(asked), "answers": measured[asked]}
            for pair in PAIRS
            for side, asked in zip(("adaparam", "pytorch"), pair)
        ],
    }
    target = ROOT / "results" / "bench-language-model.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(table(rows))
    print(target)


if __name__ == "__main__":
    main()
