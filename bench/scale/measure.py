#!/usr/bin/env python3
"""Measures training steps on 1, 2 and 4 ranks of this machine, for `model.py`. Some five minutes on two idle cores.

    cargo build --release --features mpi
    python3 bench/scale/measure.py target/release/adaparam results/mpi/measurements.json ranks
    python3 bench/scale/measure.py target/release/adaparam results/mpi/measurements.json alone

The two parts, each some minutes, are kept in one file.
"""

import json
import os
import statistics
import subprocess
import sys

PROGRAM, OUT, PART = sys.argv[1:4]
ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
commands = []


def bench(*arguments, launcher=(), repetitions=5):
    command = [*launcher, PROGRAM, "bench", "step", "--json", "--repetitions", str(repetitions), *arguments]
    shown = " ".join(["adaparam" if word == PROGRAM else word for word in command])
    if shown not in commands:
        commands.append(shown)
    output = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
    speed = json.loads(output.strip().splitlines()[-1])
    print(f"{speed['ms_per_step']:8.1f} ms  {shown}", file=sys.stderr)
    return speed


def ranks(count, *, bound=True):
    return ["mpirun", "-n", str(count), *(["--bind-to", "core"] if bound else ["--oversubscribe"])]


def processor():
    with open("/proc/cpuinfo") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))


def measure_alone():
    """One rank of one thread, with as many columns as a rank of several has, and other models."""
    columns = [
        bench(*one_thread, "--set", f"train.batch={batch}", repetitions=3) for batch in [20, 10, 5, 2]
    ]
    models = [bench(*one_thread, "--preset", preset, repetitions=3) for preset in ["ptb-24m", "wikitext-2-32m"]]
    return {"columns": columns, "models": models}


def measure_ranks():
    rounds = []
    # Taking turns, so that a change of the machine's speed meets both.
    for _ in range(2):
        threads = bench("--threads", "2")
        both = bench(*one_thread, launcher=ranks(2))
        rounds.append({"one_rank_two_threads": threads, "two_ranks_one_thread": both})
    efficiencies = [
        r["one_rank_two_threads"]["ms_per_step"] / r["two_ranks_one_thread"]["ms_per_step"] for r in rounds
    ]
    parts = [bench("--threads", "2", "--set", f"train.parts={count}") for count in [1, 4]]
    two = sorted((r["two_ranks_one_thread"] for r in rounds), key=lambda speed: speed["ms_per_step"])[0]
    four = bench(*one_thread, launcher=ranks(4, bound=False))
    return {
        "efficiency_of_two_ranks_against_two_threads": {
            "median": statistics.median(efficiencies),
            "rounds": efficiencies,
        },
        "cost_of_parts_on_one_rank": {
            str(p["parts"]): p["ms_per_step"] / parts[0]["ms_per_step"] for p in parts
        },
        "ranks": [two, four],
        "rounds": rounds,
        "parts": parts,
    }


one_thread = ["--threads", "1"]
measured = {"ranks": measure_ranks, "alone": measure_alone}[PART]()
try:
    with open(OUT) as file:
        record = json.load(file)
except FileNotFoundError:
    record = {}
record |= {
    "command": "python3 bench/scale/measure.py target/release/adaparam results/mpi/measurements.json ranks|alone",
    "commit": subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip(),
    "machine": processor(),
    "cores": os.cpu_count(),
    "mpi": subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout.splitlines()[0],
    "commands": sorted({*record.get("commands", []), *commands}),
}
record |= measured
os.makedirs(os.path.dirname(OUT) or ".", exist_ok=True)
with open(OUT, "w") as file:
    json.dump(record, file, indent=1)
    file.write("\n")
for key in ["efficiency_of_two_ranks_against_two_threads", "cost_of_parts_on_one_rank"]:
    print(key, json.dumps(record.get(key)), file=sys.stderr)
