"""How deep models learn: the paper's start and the identity, with and without skips, from one layer to six.

    cargo build --release
    python3 bench/starts.py target/release/adaparam [--data DIR] [--presets quick,ptb-2m] [--seeds 1,2,3]
                            [--models NAME;…] [--recipes NAME;…] [--layers 1,2,4,6]
    python3 bench/starts.py --table      the table anew from the record, without training

DIR has the Penn Treebank (see `adaparam data --help`). Every model of a preset has as many parameters as the preset, to
within a per cent, and is trained as the preset says but for the recipe. Adds the validation perplexity after
every epoch to results/starts/runs.json and writes a table to results/starts/README.md, anew after each run; runs that are
in the record already stay there and are not trained again. Runs are kept in `--runs`; what is not finished there
goes on, so the script can be stopped and started at any time. Two layers at 2M from the paper's start, and the LSTM's, are
those of results/precision, which are trained in the same way.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "starts"
LAYERS = [1, 2, 4, 6]
# Name, suffix of the preset, keys.
MODELS = [
    ("aLSTM, paper", "", ["model.cell.policy_start=paper"]),
    ("aLSTM, identity", "", ["model.cell.policy_start=identity"]),
    ("LSTM", "-lstm", []),
]
# Name, keys, whether word vectors are as wide as the layers, depths. The first is the preset's own training.
RECIPES = [
    ("as the preset", [], False, LAYERS),
    ("skips between layers", ["model.skip=true", "train.warm_up=200"], False, [4, 6]),
    ("skips everywhere", ["model.skip=true", "train.warm_up=200"], True, LAYERS),
]
# What every run of a preset has: at 2M, that of the other recorded rows of this size.
PROTOCOLS = {"quick": [], "ptb-2m": ["train.epochs=12", "train.cut_after=[8,10]", "train.clip=5"]}
# In which order runs are told.
ORDERS = [
    ("preset", list(PROTOCOLS)),
    ("recipe", [recipe[0] for recipe in RECIPES]),
    ("model", [model[0] for model in MODELS]),
    ("layers", LAYERS),
]
TOLERANCE = 0.01  # Of the number of parameters: one unit more in every layer changes it by more than half of that.


def parameters(program, preset, changes):
    command = [str(program), "show", preset, *flags(changes)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(re.search(r"^# (\d+) parameters", text, re.MULTILINE).group(1))


def flags(changes):
    return [flag for change in changes for flag in ("--set", change)]


def sized(program, preset, layers, changes, one_width=False):
    """The keys that give a model of `layers` layers as many parameters as the preset has.

    Layers but the last have `hidden` units; the last, or only, layer is as wide as the word vectors. With `one_width` all
    have the same."""
    wanted = parameters(program, preset, [])
    widths = ["model.hidden"] if layers > 1 else ["model.embedding"]
    widths = ["model.embedding", "model.hidden"] if one_width else widths
    key = " = ".join(widths)

    def keys(size):
        return [*changes, f"model.layers={layers}", *(f"{width}={size}" for width in widths)]

    low, high = 1, 4096
    while low < high:
        middle = (low + high) // 2
        if parameters(program, preset, keys(middle)) < wanted:
            low = middle + 1
        else:
            high = middle
    size = min((low - 1, low), key=lambda size: abs(parameters(program, preset, keys(max(size, 1))) - wanted))
    count = parameters(program, preset, keys(size))
    if abs(count - wanted) > TOLERANCE * wanted:
        sys.exit(f"{preset} with {layers} layers: {key} = {size} gives {count} parameters, not {wanted} to within a per cent")
    return keys(size), count


def train(program, preset, changes, seed, folder, data):
    """Trains a run or goes on with it; whether it came to its end."""
    if (folder / "result.json").exists():
        return True
    if (folder / "checkpoints").exists():
        command = [str(program), "resume", str(folder)]
    else:
        command = [str(program), "train", preset, *flags(changes), "--seed", str(seed), "--out", str(folder)]
    command += ["--threads", "1"] + (["--data", data] if data else [])
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    # Training that diverges ends with 1: that is a result. An error ends with 2.
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: ended with {done.returncode}\n{done.stderr}")
    return done.returncode == 1 or (folder / "result.json").exists()


def validations(folder):
    events = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [round(event["valid_perplexity"], 3) for event in events if "valid_perplexity" in event]


def recorded_elsewhere():
    """Runs of `ptb-2m` as the preset trains, in bf16, that another record has."""
    runs = []
    for row, model in (("alstm", "aLSTM, paper"), ("lstm", "LSTM")):
        for folder in sorted((ROOT / "results" / "precision" / "runs").glob(f"{row}-seed-*")):
            lines = (folder / "epochs.jsonl").read_text().splitlines()
            epochs = [epoch for epoch in map(json.loads, lines) if "valid_perplexity" in epoch]
            perplexities = [round(epoch["valid_perplexity"], 3) for epoch in epochs]
            runs.append(
                {
                    "preset": "ptb-2m",
                    "model": model,
                    "recipe": "as the preset",
                    "layers": 2,
                    "seed": int(folder.name.rsplit("-", 1)[1]),
                    "record": str(folder.relative_to(ROOT)),
                    "valid_perplexity": perplexities,
                    "finished": True,
                }
            )
    return runs


def table(runs):
    lines = [
        "# How deep models learn",
        "",
        "Validation perplexity at equal numbers of parameters, mean over seeds and their range. Products are in bf16. Every",
        "epoch of every run, its command and commit are in `runs.json`. Written by `bench/starts.py`, which adds a run at a time:",
        "where a place is empty or has fewer than three seeds, the others have not been run. At 2M all models have 12 epochs, with",
        "cuts after 8 and 10.",
        "",
        "- *as the preset*: `adaparam train quick`, or `ptb-2m` with these epochs, from that start and with so many layers.",
        "- *skips between layers*: layers that are as wide as their input add it to what they give (`model.skip`), and the rate rises",
        "  over the first 200 steps (`train.warm_up`). Word vectors stay narrower than the layers.",
        "- *skips everywhere*: the same, with word vectors as wide as the layers, so that the first layer has a skip too.",
        "",
        "[docs/deviations.md](../../docs/deviations.md) says what follows from it (*Depth*).",
    ]
    for preset in dict.fromkeys(run["preset"] for run in runs):
        own = [run for run in runs if run["preset"] == preset]
        for heading, number in (("best of all epochs", min), ("after the first epoch", lambda values: values[0])):
            lines += ["", f"## {preset}, {heading}", ""]
            lines += ["| model | training | " + " | ".join(counted(n, "layer") for n in LAYERS) + " |"]
            lines += ["|---|---|" + "---:|" * len(LAYERS)]
            for model, recipe in dict.fromkeys((run["model"], run["recipe"]) for run in own):
                cells = [cell(own, (model, recipe, layers), number) for layers in LAYERS]
                lines.append(f"| {model} | {recipe} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(runs, key, number):
    of_cell = [run for run in runs if (run["model"], run["recipe"], run["layers"]) == key]
    values = [number(run["valid_perplexity"]) for run in of_cell if run["valid_perplexity"]]
    diverged = sum(not run["finished"] for run in of_cell)
    spread = f"{min(values):.1f}–{max(values):.1f}, " if len(values) > 1 else ""
    text = f"{statistics.mean(values):.1f} ({spread}{counted(len(values), 'seed')})" if values else ""
    return text + (f" {diverged} diverged" if diverged else "")


def place(run):
    return tuple(run[name] for name, _ in ORDERS) + (run["seed"],)


def counted(number, what):
    return f"{number} {what}" + ("" if number == 1 else "s")


def wanted(parts, name, known):
    """Whether one of the parts is of this name. A part that is a whole name means only that: "LSTM" is not "aLSTM, paper"."""
    whole = [entry[0] for entry in known]
    return any(part == name or (part in name and part not in whole) for part in parts.split(";"))


def write(path, text):
    """A file that is whole or as it was before."""
    beside = path.with_suffix(path.suffix + ".new")
    beside.write_text(text)
    os.replace(beside, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, nargs="?")
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--data", help="folder with data sets")
    parser.add_argument("--presets", default="quick,ptb-2m")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--layers", default=",".join(map(str, LAYERS)))
    parser.add_argument("--models", default="", help="part of the names of models, separated by semicolons")
    parser.add_argument("--recipes", default="", help="part of the names of recipes, separated by semicolons")
    parser.add_argument("--set", dest="changes", action="append", default=[], help="a key for every run, such as train.epochs=2")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "starts", help="folder for the runs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the record and the table")
    parser.add_argument("--commit", help="commit that PROGRAM was built from [default: that of this folder]")
    arguments = parser.parse_args()
    if arguments.table:
        recorded = json.loads((arguments.results / "runs.json").read_text())["runs"]
        return write(arguments.results / "README.md", table(recorded))
    if not arguments.program:
        parser.error("PROGRAM, such as target/release/adaparam, or --table")
    program, depths = arguments.program.resolve(), [int(layers) for layers in arguments.layers.split(",")]
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    head = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = arguments.commit or subprocess.run(head, capture_output=True, text=True).stdout.strip()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    plan = [
        (preset, *model, *recipe[:3], layers)
        for preset in arguments.presets.split(",")
        for recipe in RECIPES
        if wanted(arguments.recipes, recipe[0], RECIPES)
        for model in MODELS
        if wanted(arguments.models, model[0], MODELS)
        for layers in depths
        if layers in recipe[3]
    ]
    arguments.results.mkdir(parents=True, exist_ok=True)
    file = arguments.results / "runs.json"
    runs = {place(run): run for run in recorded_elsewhere()}
    if file.exists():
        runs |= {place(run): run for run in json.loads(file.read_text())["runs"]}
    # All of one seed before the next, so that a table is there early.
    for seed in seeds:
        for preset, model, suffix, of_model, recipe, of_recipe, one_width, layers in plan:
            name, keys = preset + suffix, of_model + of_recipe
            changes, count = sized(program, name, layers, keys + PROTOCOLS[preset] + arguments.changes, one_width)
            command = " ".join(["adaparam train", name, *flags(changes), "--seed", str(seed)])
            if any(run.get("command") == command for run in runs.values()):
                continue
            key = hashlib.sha256(json.dumps([name, changes, seed]).encode()).hexdigest()[:12]
            folder = arguments.runs / f"{name}-{layers}-seed-{seed}-{key}"
            if not train(program, name, changes, seed, folder, arguments.data):
                sys.exit(f"{folder}: was stopped; start the script again to go on")
            run = {
                "preset": preset,
                "model": model,
                "recipe": recipe,
                "layers": layers,
                "seed": seed,
                "parameters": count,
                "command": command,
                "commit": commit,
                "valid_perplexity": validations(folder),
                "finished": (folder / "result.json").exists(),
            }
            runs[place(run)] = run
            in_order = sorted(runs.values(), key=lambda run: [order.index(run[name]) for name, order in ORDERS] + [run["seed"]])
            machine = {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system()}
            record = {"command": "python3 bench/starts.py PROGRAM", "machine": machine, "runs": in_order}
            write(file, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
            write(arguments.results / "README.md", table(in_order))
            print(f"{preset}, {model}, {recipe}, {layers} layers, seed {seed}: {run['valid_perplexity']}", flush=True)


if __name__ == "__main__":
    main()
