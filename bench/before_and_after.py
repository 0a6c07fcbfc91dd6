"""Whether a change made training slower: two builds of the program, in turns.

    python3 bench/before_and_after.py BEFORE AFTER --name seam --commit-before 10c6ff6 --commit-after 3e587a9

Each round runs `bench step` of every model with one binary and then with the other, so that whatever else the machine
does meets both; odd rounds begin with the second. A round gives one ratio of speeds; the median of the ratios counts, and
their quartiles tell how sure it is. Memory is told twice: all that is resident, with the pages of the program's own code that
the system maps from its file, and what is the process's own, seen every few milliseconds. Writes
results/bench-before-and-after-NAME.json.
"""

import argparse
import json
import platform
import statistics
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Preset, model, steps in a round.
CASES = [("ptb-17m", "alstm", 3), ("ptb-17m", "lstm", 3), ("small", "alstm", 20), ("small", "lstm", 20)]


def measure(binary, preset, model, repetitions, threads):
    command = [str(binary), "bench", "step", "--preset", preset, "--model", model, "--json"]
    command += ["--repetitions", str(repetitions), "--threads", str(threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    own = 0.0
    while process.poll() is None:
        own = max(own, own_mb(process.pid))
        time.sleep(0.004)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return json.loads(process.stdout.read()) | {"own_mb": own}


def own_mb(pid):
    """Memory that is mapped from no file, in millions of bytes."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) * 1024e-6 for line in lines if line.startswith("RssAnon"))


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--commit-before", required=True, help="commit that BEFORE was built from")
    parser.add_argument("--commit-after", required=True, help="commit that AFTER was built from")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    binaries = {"before": arguments.before, "after": arguments.after}
    cases = []
    for preset, model, repetitions in CASES:
        rounds = {"before": [], "after": []}
        for number in range(arguments.rounds):
            order = ["before", "after"] if number % 2 == 0 else ["after", "before"]
            for which in order:
                rounds[which].append(measure(binaries[which], preset, model, repetitions, arguments.threads))
        median = {
            which: statistics.median(speed["ms_per_step"] for speed in speeds) for which, speeds in rounds.items()
        }
        pairs = zip(rounds["before"], rounds["after"])
        ratios = sorted(before["ms_per_step"] / after["ms_per_step"] for before, after in pairs)
        lower, speed, upper = statistics.quantiles(ratios, n=4)
        memory = {which: max(speed["peak_rss_mb"] for speed in speeds) for which, speeds in rounds.items()}
        own = {which: max(speed["own_mb"] for speed in speeds) for which, speeds in rounds.items()}
        case = {
            "preset": preset,
            "model": model,
            "parameters": rounds["after"][0]["parameters"],
            "instructions": rounds["after"][0]["instructions"],
            "ms_before": [speed["ms_per_step"] for speed in rounds["before"]],
            "ms_after": [speed["ms_per_step"] for speed in rounds["after"]],
            "speed_after_over_before": speed,
            "speed_quartiles": [lower, upper],
            "peak_mb_before": memory["before"],
            "peak_mb_after": memory["after"],
            "memory_after_over_before": memory["after"] / memory["before"],
            "own_mb_before": own["before"],
            "own_mb_after": own["after"],
            "own_memory_after_over_before": own["after"] / own["before"],
        }
        cases.append(case)
        print(
            f"{preset} {model}: {median['before']:.1f} ms before, {median['after']:.1f} ms after, "
            f"speed {speed:.3f} ({lower:.3f} to {upper:.3f}), memory {case['memory_after_over_before']:.3f}, "
            f"its own {case['own_memory_after_over_before']:.3f}",
            flush=True,
        )
    record = {
        "command": f"bench/before_and_after.py BEFORE AFTER --name {arguments.name} --rounds {arguments.rounds}",
        "commit_before": arguments.commit_before,
        "commit_after": arguments.commit_after,
        "machine": f"{processor()}, {platform.system()}",
        "threads": arguments.threads,
        "cases": cases,
    }
    path = ROOT / "results" / f"bench-before-and-after-{arguments.name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    print(path)


if __name__ == "__main__":
    main()
