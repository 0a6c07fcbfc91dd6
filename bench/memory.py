#!/usr/bin/env python3
"""The memory forecast of presets beside the most that a whole run has taken: one epoch on a part of a text, its checkpoints,
validation, test and page.

    bench/memory.py target/release/adaparam ~/data/ptb quick small ptb-2m > results/memory.json

The second argument is a folder with train.txt, valid.txt and test.txt. The page of a run has both numbers.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS = {"train.txt": 30_000, "valid.txt": 2_500, "test.txt": 1_000}


def first_lines(source, target, words):
    """As many whole lines as reach so many words."""
    with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as out:
        for line in lines:
            if words <= 0:
                break
            out.write(line)
            words -= len(line.split()) + 1


def megabytes(page, label):
    at = page.index(label)
    text = re.sub("<[^>]+>", " ", page[at : at + 400])
    return int(re.search(r"([\d,]+)\s+MB", text).group(1).replace(",", ""))


def main():
    program, data, presets = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]), sys.argv[3:]
    rows = []
    for preset in presets:
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            for name, words in WORDS.items():
                first_lines(data / name, folder / name, words)
            texts = ["--text", "train.txt", "--valid", "valid.txt", "--test", "test.txt"]
            command = ["train", preset, *texts, "--set", "train.epochs=1", "--threads", "2", "--out", "run"]
            subprocess.run([program, *command], cwd=folder, check=True, capture_output=True)
            page = (folder / "run" / "report.html").read_text(encoding="utf-8")
            record = json.loads((folder / "run" / "record.json").read_text(encoding="utf-8"))
        forecast = megabytes(page, "Memory of the model in training")
        measured = megabytes(page, "Most memory of the process")
        rows.append(
            {
                "preset": preset,
                "forecast_mb": forecast,
                "measured_mb": measured,
                "ratio": round(forecast / measured, 3),
            }
        )
    json.dump({"words": WORDS, "commit": record["commit"], "machine": record["machine"], "runs": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
