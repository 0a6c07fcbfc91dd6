"""Whether `adaparam train` delivers the words a second that `adaparam bench step` shows.

    cargo build --release
    python3 bench/training.py [--data DIR]        # DIR has the Penn Treebank (see `adaparam data --help`)

Both programs are started with the same preset and precision, and take turns of a few seconds: one is stopped while the other runs, so
that whatever else the machine does meets both. Of the training run all steps count that no turn has interrupted, from
the end of one to the end of the next, with all that the loop does between them: draws, checkpoints, metrics, progress.
Of the bench, its median step. Writes results/bench-training.json.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADAPARAM = ROOT / "target" / "release" / "adaparam"
# Preset, precision, seconds of a turn, turns, steps of the bench: about as many as fit into its turns; the rest it takes alone.
CASES = [
    ("quick", "f32", 2, 12, 350),
    ("small", "f32", 2, 12, 350),
    ("ptb-17m", "f32", 6, 8, 40),
    ("small", "bf16", 2, 12, 450),
    ("ptb-17m", "bf16", 6, 8, 70),
]
SETTLING = 4  # Seconds until both have their data and buffers.


class Steps(threading.Thread):
    """The moments at which steps of a training run ended, and their words."""

    def __init__(self, run):
        super().__init__(daemon=True)
        self.run_, self.ends = run, []

    def run(self):
        for line in self.run_.stdout:
            event = json.loads(line)
            if event.get("event") == "step":
                self.ends.append((time.monotonic(), event["words"]))


def compare(preset, precision, turn, turns, repetitions, data):
    with tempfile.TemporaryDirectory() as folder:
        train = [str(ADAPARAM), "train", preset, "--json", "--out", str(Path(folder) / "run")]
        train += ["--data", data] if data else []
        train += ["--precision", precision]
        bench = [str(ADAPARAM), "bench", "step", "--preset", preset, "--repetitions", str(repetitions), "--json"]
        bench += ["--precision", precision]
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(train, **quiet) as train, subprocess.Popen(bench, **quiet) as bench:
            steps = Steps(train)
            steps.start()
            time.sleep(SETTLING)
            bench.send_signal(signal.SIGSTOP)
            spans = []
            for _ in range(turns):
                start = time.monotonic()
                time.sleep(turn)
                train.send_signal(signal.SIGSTOP)
                spans.append((start, time.monotonic()))
                bench.send_signal(signal.SIGCONT)
                time.sleep(turn)
                bench.send_signal(signal.SIGSTOP)
                train.send_signal(signal.SIGCONT)
            train.send_signal(signal.SIGINT)
            train.wait()
            bench.send_signal(signal.SIGCONT)
            measured = json.loads(bench.communicate()[0])
    words = seconds = count = 0
    for (before, _), (end, in_step) in zip(steps.ends, steps.ends[1:]):
        if any(start <= before and end <= stop for start, stop in spans):
            words, seconds, count = words + in_step, seconds + end - before, count + 1
    return {
        "preset": preset,
        "precision": precision,
        "bench_words_per_s": measured["words_per_s"],
        "train_words_per_s": words / seconds,
        "train_of_bench": words / seconds / measured["words_per_s"],
        "bench_steps": measured["repetitions"],
        "train_steps": count,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with data sets")
    data = parser.parse_args().data
    rows = []
    for case in CASES:
        rows.append(compare(*case, data))
        print(rows[-1], flush=True)
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    record = {
        "command": "python3 bench/training.py",
        "commit": commit.stdout.strip(),
        "machine": {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system()},
        "rows": rows,
    }
    (ROOT / "results" / "bench-training.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
