#!/usr/bin/env python3
"""Runs `adaparam reproduce --quick`, keeps its record in results/quick and shows its end in the README.

    cargo build --release
    python3 bench/readme_quick.py                   # some four minutes on two cores
    python3 bench/readme_quick.py --report-only     # from the record that is there, without training

What is kept is what the report is made from: no checkpoints, locks or pages to play with. A test of adaparam-cli compares the README with
what the command prints from that record.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "results" / "quick"
MARK = "<!-- Made by bench/readme_quick.py -->\n```text\n"
NOT_KEPT = ["checkpoints", "lock", "time.json", "explore.html", "networks.json"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "target" / "release" / "adaparam", help="the program to run")
    parser.add_argument("--report-only", action="store_true", help="train nothing")
    chosen = parser.parse_args()
    program = pathlib.Path(chosen.program).resolve()
    if not program.exists():
        sys.exit(f"{program}: is not there: build it with `cargo build --release`, or name another with --program")
    if not chosen.report_only:
        if RECORD.exists():
            shutil.rmtree(RECORD)
        run(program)
        for path in sorted(RECORD.rglob("*"), reverse=True):
            if path.name in NOT_KEPT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    # From the record alone, as the test makes it; the report and its record stay those of the run itself.
    kept = {name: (RECORD / name).read_bytes() for name in ["report.html", "results.md", "record.json", "result.json"]}
    ending = run(program, "--report-only")
    for name, content in kept.items():
        (RECORD / name).write_bytes(content)
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, found, rest = text.partition(MARK)
    if not found:
        sys.exit(f"{readme}: has no line {MARK.splitlines()[0]!r} with a block of text below it")
    after = rest[rest.index("\n```"):]
    readme.write_text(before + MARK + ending.rstrip("\n") + after, encoding="utf-8")
    print(ending)


def run(program, *flags):
    command = [program, "reproduce", "--quick", "--out", "results/quick", *flags]
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout


if __name__ == "__main__":
    main()
