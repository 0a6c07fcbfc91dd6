"""Whether `adaparam train` delivers the words a second that `adaparam bench step` shows.

    cargo build --release
    python3 bench/training.py [--data DIR]        # DIR has the Penn Treebank (see `adaparam data --help`)

Both run in turns, in processes of their own, with the same preset. Of a training run the first steps do not count, and
it is stopped when enough have been seen; what counts are the words of the steps and the time between them, with all
that the loop does beside them: draws, checkpoints, metrics, progress. Writes results/bench-training.json.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADAPARAM = ROOT / "target" / "release" / "adaparam"
ROUNDS = 3
# Preset, steps to skip, steps to time: in the smaller ones a checkpoint, one in a hundred steps, is among them.
PRESETS = [("quick", 20, 120), ("small", 20, 120), ("ptb-17m", 3, 10)]


def bench(preset, steps):
    command = [str(ADAPARAM), "bench", "step", "--preset", preset, "--repetitions", str(steps), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["words_per_s"]


def train(preset, skip, steps, data):
    with tempfile.TemporaryDirectory() as folder:
        command = [str(ADAPARAM), "train", preset, "--json", "--out", str(Path(folder) / "run")]
        command += ["--data", data] if data else []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
            words, start, seen = 0, None, 0
            for line in run.stdout:
                event = json.loads(line)
                if event.get("event") != "step":
                    continue
                seen += 1
                if seen == skip:
                    start = time.monotonic()
                elif seen > skip:
                    words += event["words"]
                if seen == skip + steps:
                    seconds = time.monotonic() - start
                    run.send_signal(signal.SIGINT)
                    break
            run.stdout.read()
        return words / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with data sets")
    data = parser.parse_args().data
    rows = []
    for preset, skip, steps in PRESETS:
        rounds = [(bench(preset, steps), train(preset, skip, steps, data)) for _ in range(ROUNDS)]
        rows.append(
            {
                "preset": preset,
                "bench_words_per_s": [round(one) for one, _ in rounds],
                "train_words_per_s": [round(other) for _, other in rounds],
                "train_of_bench": statistics.median(other / one for one, other in rounds),
            }
        )
        print(rows[-1], flush=True)
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    record = {
        "command": "python3 bench/training.py",
        "commit": commit.stdout.strip(),
        "machine": {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system()},
        "rounds": ROUNDS,
        "rows": rows,
    }
    (ROOT / "results" / "bench-training.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
