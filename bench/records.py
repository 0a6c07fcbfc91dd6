#!/usr/bin/env python3
"""Keeps the records under results/ small and their pages up to date.

    python3 bench/records.py pack      loss logs become metrics.jsonl.gz, beside them epochs.jsonl with a line an epoch
    python3 bench/records.py pages     every page, figure and table anew from what the records hold, without training

`adaparam` reads packed logs as it reads plain ones. `pages` needs a program: target/release/adaparam, or --program.
"""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"

# The command that tells of each record. Records of a command that trained keep what they say of it.
REPORTS = {
    "paper": ["reproduce", "all", "--scale", "small"],
    "quick": ["reproduce", "--quick"],
    "ptb-2m-bolt-ons": ["reproduce", "ptb", "--scale", "small", "--systems", "lstm,recurrent,awd-lstm,lstm-mos,recurrent-mos"],
    "ptb-17m": ["reproduce", "ptb", "--scale", "full"],
    "ptb-17m-33-epochs": ["reproduce", "ptb", "--scale", "full", "--systems", "recurrent"],
    "mnist-search": ["reproduce", "mnist", "--search"],
    "wall-clock/ptb": ["reproduce", "ptb", "--scale", "small", "--systems", "recurrent,awd-lstm"],
    "wall-clock/wikitext2": ["reproduce", "wikitext2", "--scale", "small", "--systems", "recurrent,awd-lstm"],
}
# Pictures of the book.
PICTURES = {"heat-maps.svg": "heat-maps.svg", "tail.svg": "tail.svg", "ptb-validation.svg": "ptb.svg"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pack", "pages"])
    parser.add_argument("--program", default=ROOT / "target" / "release" / "adaparam", help="the program to run")
    chosen = parser.parse_args()
    if chosen.what == "pack":
        pack()
    else:
        pages(pathlib.Path(chosen.program).resolve())


def pack():
    before = after = 0
    for log in sorted(RESULTS.rglob("metrics.jsonl")):
        content = log.read_bytes()
        lines = [json.loads(line) for line in content.splitlines()]
        packed = gzip.compress(content, 9, mtime=0)  # the same log gives the same file
        log.with_suffix(".jsonl.gz").write_bytes(packed)
        told = epochs(lines)
        if told:
            text = "".join(json.dumps(line) + "\n" for line in told)
            log.with_name("epochs.jsonl").write_text(text)
        log.unlink()
        before, after = before + len(content), after + len(packed)
    print(f"{before / 1e6:.1f} MB of logs became {after / 1e6:.1f} MB")


def epochs(lines):
    """A line for each epoch: its steps, mean training loss and last rate, and what its end came to; changes and test as they are."""
    told, steps = [], []
    for line in lines:
        if "window" in line:
            steps.append(line)
        elif "valid_loss" in line:
            rows = sum(step["window"] for step in steps)
            loss = sum(step["loss"] * step["window"] for step in steps) / max(rows, 1)
            own = {"steps": len(steps), "train_loss": round(loss, 6), "last_rate": steps[-1]["learning_rate"] if steps else None}
            told.append({"epoch": line["epoch"], **own, **line})
            steps = []
        elif "experiment" not in line:
            told.append(line)
    return told


def pages(program):
    if not program.exists():
        sys.exit(f"{program}: is not there: build it with `cargo build --release`, or name another with --program")
    run = lambda *arguments: subprocess.run([program, "--quiet", *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    environment = {**os.environ, "COLUMNS": "100"}
    for name, command in REPORTS.items():
        kept = {path: path.read_bytes() for path in (RESULTS / name).rglob("record.json")}
        done = run(*command, "--report-only", "--out", f"results/{name}")
        # 1: a claim of the paper is not met.
        if done.returncode not in (0, 1):
            sys.exit(f"results/{name}: the command ended with {done.returncode}")
        for path, content in kept.items():
            path.write_bytes(content)
        print(f"results/{name}/report.html")
    for part in ("tail", "mnist"):
        retell(part)
    runs = RESULTS / "quick" / "ptb" / "runs"
    if run("runs", str(runs.relative_to(ROOT)), "--pages").returncode != 0:
        sys.exit(f"{runs}: the pages of runs could not be made")
    for figure, picture in PICTURES.items():
        shutil.copyfile(RESULTS / "paper" / "figures" / figure, ROOT / "book" / "src" / "images" / picture)
    print("pages of runs, and the book's pictures")


def retell(part):
    """A part that only its own command writes gets its claims as the whole report tells them."""
    whole = json.loads((RESULTS / "paper" / "result.json").read_text())
    file = RESULTS / "paper" / part / "result.json"
    result = json.loads(file.read_text())
    own = {claim["id"] for claim in result["claims"]}
    claims = [claim for claim in whole["claims"] if claim["id"] in own]
    if claims != result["claims"]:
        file.write_text(json.dumps({**result, "claims": claims}, indent=2, ensure_ascii=False) + "\n")


main()
