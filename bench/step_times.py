"""What a training step takes, of the paper's models and of the AWD-LSTM: four presets of one build, in turns.

    cargo build --release
    python3 bench/step_times.py [--rounds 5] [--threads 2] [--out results/paper/step-times.json]
    target/release/adaparam reproduce --report-only --out results/paper

Each round times every preset once, one after the other, so that whatever else the machine does meets all of them; every
other round goes backwards. The report whose folder holds the record judges the paper's sentences about wall-clock time by
it: epochs times the time of a word.
"""

import argparse
import json
import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADAPARAM = ROOT / "target" / "release" / "adaparam"
PRESETS = ["ptb-17m", "ptb-awd", "wikitext-2-32m", "wikitext2-awd"]


def measure(preset, threads):
    command = [str(ADAPARAM), "bench", "step", "--preset", preset, "--repetitions", "5", "--threads", str(threads), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def machine():
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "paper" / "step-times.json")
    arguments = parser.parse_args()
    presets = {}
    for number in range(arguments.rounds):
        for preset in PRESETS if number % 2 == 0 else PRESETS[::-1]:
            speed = measure(preset, arguments.threads)
            steps = presets.setdefault(preset, {
                "parameters": speed["parameters"],
                "batch": speed["batch"],
                "window": speed["window"],
                "path": speed["instructions"],
                "ms_per_step": [],
            })
            steps["ms_per_step"].append(round(speed["ms_per_step"], 3))
            print(f"round {number + 1} of {arguments.rounds}: {preset} {speed['ms_per_step']:.1f} ms a step", flush=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    record = {
        "command": f"python3 bench/step_times.py --rounds {arguments.rounds} --threads {arguments.threads}",
        "commit": commit,
        "machine": machine(),
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        "presets": {preset: presets[preset] for preset in PRESETS},
    }
    arguments.out.write_text(json.dumps(record, indent=2) + "\n")
    print(arguments.out)


if __name__ == "__main__":
    main()
