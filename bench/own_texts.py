#!/usr/bin/env python3
"""A Chinese and a French text, trained from the command line and continued by their models.

    cargo build --release
    apt-get download libreoffice-help-zh-cn debian-reference-fr
    for package in *.deb; do dpkg -x $package FOLDER; done
    python3 bench/own_texts.py target/release/adaparam FOLDER [--runs DIR] [--only NAME]

The texts are the help of LibreOffice in Chinese (MPL) and the Debian Reference in French (GPL); neither is in this repository. Of the first,
paragraphs of Chinese characters and their punctuation alone are taken, each once; of the second, paragraphs of prose. What is finished in
`--runs` is not trained again; with `--only` the others stay as they are recorded. Writes results/own-texts/runs.json and the page beside it.
"""

import argparse
import gzip
import hashlib
import html
import json
import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "own-texts"
SAMPLING = ["--temperature", "0.5", "--samples", "3", "--max-tokens", "120"]


def chinese(folder):
    """Whole sentences without a Latin letter, digit or sign."""
    found = {}
    for file in sorted(folder.glob("**/help/zh-CN/text/**/*.html")):
        for paragraph in re.findall(r"<p\b[^>]*>(.*?)</p>", file.read_text(encoding="utf-8"), re.DOTALL):
            text = re.sub(r"\s+", "", html.unescape(re.sub(r"<[^>]+>", "", paragraph)))
            if len(text) >= 20 and re.fullmatch(r"[\u4e00-\u9fff，。、；：！？「」《》（）]+。", text):
                found[text] = None
    return list(found)


def french(folder):
    """Paragraphs of prose: indented, of letters mostly, with accents as English ones have not."""
    found = []
    raw = next(folder.glob("**/debian-reference.fr.txt.gz")).read_bytes()
    for block in re.split(r"\n\s*\n", gzip.decompress(raw).decode("utf-8").replace("\u00a0", " ")):
        lines = block.split("\n")
        joined = " ".join(line.strip() for line in lines)
        letters = sum(character.isalpha() or character == " " for character in joined)
        is_prose = lines[0].startswith("    ") and not joined.startswith(("|", "+", "$", "#", "*"))
        if is_prose and len(joined) >= 40 and letters >= 0.75 * len(joined) and re.search("[éèàçê]", joined):
            found.append(joined)
    return found


# What it is, name of its text and run, what it is taken from, its paragraphs, preset and flags of training, what samples begin with.
TEXTS = [
    ("Chinese", "zh", "libreoffice-help-zh-cn", chinese, ["quick-char", "--set", "train.batch=8", "--set", "train.epochs=20"], "您可以"),
    ("French", "fr", "debian-reference-fr", french, ["quick-char", "--set", "train.batch=8", "--set", "train.epochs=10"], "Le système"),
    ("French, in words", "fr-words", "debian-reference-fr", french,
     ["quick", "--set", "data.tokens=unicode-words", "--set", "train.batch=8", "--set", "train.epochs=12"], "Le système"),
]


def run(command, **more):
    print("$", " ".join(map(str, command)), flush=True)
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def page(rows):
    parts = ["# Texts of other languages, trained and continued", "", "Made by `bench/own_texts.py`; `runs.json` has all numbers.", ""]
    for row in rows:
        result = row["result"]
        bits = result.get("bits")
        parts += [f"## {row['language']}", "", f"{row['characters']:,} characters from the package `{row['text']}`.", ""]
        parts += ["```sh", row["train"], row["generate"], "```", ""]
        if bits:
            parts += [f"Bits per character: {bits['valid']:.3f} on the validation text, {bits['test']:.3f} on the test text.", ""]
        else:
            valid, test = result["valid_perplexity"], result["test_perplexity"]
            parts += [f"Perplexity: {valid:.1f} on the validation text, {test:.1f} on the test text.", ""]
        for sample in row["samples"]:
            parts += ["> " + sample["text"].replace("\n", "\n> "), ""]
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "own-texts")
    parser.add_argument("--only", metavar="NAME", choices=[name for _, name, *_ in TEXTS], help="the text of this name alone")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    recorded = {}
    if arguments.only:
        runs = json.loads((RESULTS / "runs.json").read_text(encoding="utf-8"))["runs"]
        recorded = {row["language"]: row for row in runs}
    rows = []
    for language, name, package, paragraphs, flags, prompt in TEXTS:
        if arguments.only and name != arguments.only:
            rows += [recorded[language]] if language in recorded else []
            continue
        text = "\n".join(paragraphs(arguments.folder)) + "\n"
        (arguments.runs / f"{name}.txt").write_text(text, encoding="utf-8")
        train = ["train", flags[0], "--text", f"{name}.txt", "--out", name, *flags[1:]]
        if not (arguments.runs / name / "result.json").exists():
            run([program, "-q", *train], cwd=arguments.runs)
        generate = ["generate", name, "--prompt", prompt, *SAMPLING]
        told = run([program, *generate, "--json"], cwd=arguments.runs)
        result = json.loads((arguments.runs / name / "result.json").read_text(encoding="utf-8"))
        record = json.loads((arguments.runs / name / "record.json").read_text(encoding="utf-8"))
        rows.append({
            "language": language,
            "text": package,
            "sha256": hashlib.sha256(text.encode("utf-8")).hexdigest(),
            "characters": len(text),
            "train": shlex.join(["adaparam", *train]),
            "generate": shlex.join(["adaparam", *generate]),
            "result": result,
            "samples": [json.loads(line) for line in told.splitlines()],
            "commit": record["commit"],
            "machine": record["machine"],
            "seconds": record.get("seconds"),
        })
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "README.md").write_text(page(rows), encoding="utf-8")
    record = {"what": "texts of other languages, trained and continued", "command": "bench/own_texts.py", "runs": rows}
    (RESULTS / "runs.json").write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
