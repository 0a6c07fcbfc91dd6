"""What fewer bits in products gain on this machine: f32, bf16 and int8 of one build, in turns.

    cargo build --release
    python3 bench/precision.py [--rounds 7] [--threads 2]

Each round runs `adaparam bench` of every case in every precision, one after the other, so that whatever else the machine
does meets all of them; every other round goes backwards. A round gives one ratio to f32; the median of the ratios
counts, and their quartiles tell how sure it is. Memory is the largest of any round. Writes results/bench-precision.json.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADAPARAM = ROOT / "target" / "release" / "adaparam"
LEARNS, READS = ["f32", "bf16"], ["f32", "bf16", "int8"]
# Name, arguments of `bench`, precisions.
CASES = [
    ("training step, 17M adaptive LSTM", ["step", "--repetitions", "3"], LEARNS),
    ("training step, 20M plain LSTM", ["step", "--model", "lstm", "--repetitions", "3"], LEARNS),
    ("training step, small adaptive LSTM", ["step", "--preset", "small", "--repetitions", "20"], LEARNS),
    ("evaluation, 17M adaptive LSTM", ["eval", "--repetitions", "5"], READS),
    ("generation, 17M adaptive LSTM", ["generate", "--repetitions", "10"], READS),
    ("generation of 8 texts, 17M adaptive LSTM", ["generate", "--samples", "8", "--repetitions", "5"], READS),
]


def measure(arguments, precision, threads):
    command = [str(ADAPARAM), "bench", *arguments, "--precision", precision, "--threads", str(threads), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    rows = []
    for name, what, precisions in CASES:
        rounds = {precision: [] for precision in precisions}
        for number in range(arguments.rounds):
            for precision in precisions if number % 2 == 0 else precisions[::-1]:
                rounds[precision].append(measure(what, precision, arguments.threads))
        whole = [speed["words_per_s"] for speed in rounds["f32"]]
        for precision, speeds in rounds.items():
            ratios = [speed["words_per_s"] / f32 for speed, f32 in zip(speeds, whole)]
            rows.append({
                "what": name,
                "command": " ".join(["adaparam bench", *what, "--precision", precision]),
                "path": speeds[0]["instructions"],
                "ms": statistics.median(speed["ms_per_step"] for speed in speeds),
                "words_per_s": statistics.median(speed["words_per_s"] for speed in speeds),
                "of_f32": statistics.median(ratios),
                "of_f32_quartiles": [statistics.quantiles(ratios, n=4)[at] for at in (0, 2)],
                "peak_rss_mb": max(speed["peak_rss_mb"] for speed in speeds),
            })
            print(rows[-1], flush=True)
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    flags = next((line.split(":")[1].split() for line in open("/proc/cpuinfo") if line.startswith("flags")), [])
    known = ["avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16"]
    record = {
        "command": f"python3 bench/precision.py --rounds {arguments.rounds} --threads {arguments.threads}",
        "commit": commit.stdout.strip(),
        "machine": {
            "cpu": cpu,
            "cores": os.cpu_count(),
            "system": platform.system(),
            "instructions": [flag for flag in known if flag in flags],
        },
        "rows": rows,
    }
    (ROOT / "results" / "bench-precision.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
