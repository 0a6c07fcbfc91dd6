#!/usr/bin/env python3
"""The memory forecast of presets beside the most that a run has taken: three windows of training, then all that comes after an
epoch, its checkpoint, validation, test and page.

    bench/memory.py target/release/adaparam all --into results/memory.json
    bench/memory.py target/release/adaparam quick ptb-17m ptb-2m:train.parts=4

Words are made up, each of them once, so that the vocabulary is as large as three windows; windows are all of one length, since
three draws say nothing of the longest. With --into FILE, rows of that file are kept unless they are measured again, and each is
written as soon as it is there; otherwise all are printed.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

WINDOWS = 3
MINUTES = 40


def text(words, first=0):
    lines = ([f"w{at + i}" for i in range(min(20, first + words - at))] for at in range(first, first + words, 20))
    return "".join(" ".join(line) + "\n" for line in lines)


def megabytes(page, label):
    at = page.index(label)
    plain = re.sub("<[^>]+>", " ", page[at : at + 400])
    return int(re.search(r"([\d,]+)\s+MB", plain).group(1).replace(",", ""))


def measure(program, name):
    preset, *changes = name.split(":")
    settings = [part for change in changes for part in ("--set", change)]
    shown = subprocess.run([program, "show", preset, *settings], check=True, capture_output=True, text=True).stdout
    train = tomllib.loads(shown)["train"]
    window, batch = train["window"], train["batch"]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        # One line in twenty words is an end of line more.
        (folder / "train.txt").write_text(text(WINDOWS * window * batch))
        (folder / "valid.txt").write_text(text(2 * window * train.get("valid_batch", 10)))
        (folder / "test.txt").write_text(text(3 * window * train.get("test_batch", 1)))
        command = ["train", preset, *settings, "--text", "train.txt", "--valid", "valid.txt", "--test", "test.txt"]
        command += ["--set", "data.min_count=1", "--set", "train.epochs=1", "--set", "train.window_deviation=0"]
        command += ["--set", "train.window_half_probability=0", "--set", "data.tokens=words"]
        command += ["--threads", "2", "--out", "run"]
        started = time.monotonic()
        subprocess.run([program, "-q", *command], cwd=folder, check=True, capture_output=True, timeout=60 * MINUTES)
        seconds = time.monotonic() - started
        page = (folder / "run" / "report.html").read_text(encoding="utf-8")
        record = json.loads((folder / "run" / "record.json").read_text(encoding="utf-8"))
    forecast = megabytes(page, "Memory of the model in training")
    measured = megabytes(page, "Most memory of the process")
    row = {
        "preset": name,
        "computed_with": record["computed_with"],
        "forecast_mb": forecast,
        "measured_mb": measured,
        "ratio": round(forecast / measured, 3),
        "seconds": round(seconds),
        "commit": record["commit"],
        "machine": record["machine"],
    }
    return row


def main():
    arguments = sys.argv[1:]
    what = "forecast beside the peak of the process, of three windows of made-up words and all that follows them"
    record, rows, into = {"what": what, "command": "bench/memory.py"}, {}, None
    if "--into" in arguments:
        at = arguments.index("--into")
        into = Path(arguments[at + 1])
        record = json.loads(into.read_text(encoding="utf-8"))
        rows = {row["preset"]: row for row in record["runs"]}
        del arguments[at : at + 2]
    program, names = str(Path(arguments[0]).resolve()), arguments[1:]
    if names == ["all"]:
        shown = subprocess.run([program, "show"], check=True, capture_output=True, text=True).stdout
        names = [line.split()[0] for line in shown.splitlines() if line and not line.startswith(" ")]
    for name in names:
        try:
            rows[name] = measure(program, name)
            told = "{preset}: {forecast_mb} MB forecast, {measured_mb} MB measured, {ratio}".format(**rows[name])
        except subprocess.TimeoutExpired:
            rows[name] = {"preset": name, "not_measured": f"took more than {MINUTES} minutes"}
            told = f"{name}: took more than {MINUTES} minutes"
        print(told, file=sys.stderr)
        record["runs"] = list(rows.values())
        if into:
            into.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if not into:
        json.dump(record, sys.stdout, indent=1, ensure_ascii=False)
        print()


if __name__ == "__main__":
    main()
