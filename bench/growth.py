"""How time and memory of a training step grow with the window's length and with the number of layers.

    cargo build --release
    python3 bench/growth.py

Every size runs in a process of its own, because memory is counted for a process, and sizes take turns so that a
disturbance of the machine does not fall on one of them. Writes results/bench-growth.json.
"""

import json
import os
import platform
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADAPARAM = ROOT / "target" / "release" / "adaparam"
ROUNDS = 3
PRESET = "small"
WINDOWS = [35, 70, 140, 280, 500, 1000, 2000]
LAYERS = [1, 2, 3, 4, 6, 8]


def measure(changes):
    command = [str(ADAPARAM), "bench", "step", "--preset", PRESET, "--repetitions", "5", "--json"]
    for key, value in changes.items():
        command += ["--set", f"{key}={value}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def series(key, values):
    rounds = [[measure({key: value}) for value in values] for _ in range(ROUNDS)]
    rows = []
    for value, runs in zip(values, zip(*rounds)):
        rows.append(
            {
                key: value,
                "parameters": runs[0]["parameters"],
                "ms_per_step": statistics.median(run["ms_per_step"] for run in runs),
                "words_per_s": statistics.median(run["words_per_s"] for run in runs),
                "peak_rss_mb": statistics.median(run["peak_rss_mb"] for run in runs),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main():
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    record = {
        "command": "python3 bench/growth.py",
        "commit": commit.stdout.strip(),
        "machine": {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system()},
        "preset": PRESET,
        "rounds": ROUNDS,
        "window": series("train.window", WINDOWS),
        "layers": series("model.layers", LAYERS),
    }
    (ROOT / "results" / "bench-growth.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
