"""Holds onnxruntime against ours: `python onnx_check.py FOLDER docs/onnx ADAPARAM`.

Models of the example `onnx_reference` are in FOLDER, each with what the library gives. Others are trained here by the command
ADAPARAM and exported by it; what they must give is asked of `eval --tokens`, `explain --json` and `generate --json`.
"""

import contextlib
import io
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx

folder, program = pathlib.Path(sys.argv[1]), sys.argv[3]
sys.path.insert(0, sys.argv[2])
import generate  # noqa: E402  (the documented loop is what is checked)

TOLERANCE = 1e-5
TEXT = "the whale , said l'été , is a whale of the sea .\n\tcall me ahab\nshe sees 3.14 seas and a whale\n" * 40
TRAINED = {
    "trained-words": ["model.cell.latent=5"],
    "trained-lstm": ["model.cell.kind=lstm"],
    "trained-characters": ["model.cell.latent=5", "data.tokens=characters"],
    "trained-bytes": ["model.cell.latent=5", "data.tokens=bytes"],
    "trained-unicode-words": ["model.cell.kind=adaptive-gru", "model.cell.latent=5", "data.tokens=unicode-words"],
}
# Of Unicode words, `whale` stands behind a space only.
PROMPTS = ["call me", "call me Zebulon, 床 l'été\n", "\tthe  sea", "whale of"]


def asked(*arguments):
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def furthest(found, expected):
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.size == expected.size, f"{found.size} numbers for {expected.size}"
    return float(np.abs(found.ravel() - expected.ravel()).max())


def of_library(model, reference):
    """How far scores and policies are from those of the library, and how many policies there are."""
    state, scores, policies = model.zero_state(len(reference["steps"][0]["ids"])), 0.0, 0.0
    for step in reference["steps"]:
        logits, state, found = model.step(step["ids"], state, with_policies=True)
        scores = max(scores, furthest(logits, step["logits"]))
        assert len(found) == len(step["policies"]), f"{len(found)} policies for {len(step['policies'])}"
        for policy, expected in zip(found, step["policies"]):
            policies = max(policies, furthest(policy, expected))
    return scores, policies, len(found)


def train(name, keys):
    """A model by the command, exported by it, and what it writes behind some prompts."""
    text, run, path = folder / f"{name}.train", folder / f"{name}.run", folder / f"{name}.onnx"
    # What occurs once becomes <unk>.
    text.write_text(TEXT + "once\n", newline="")
    sizes = ["model.embedding=10", "model.hidden=14", "model.layers=2", "train.epochs=2", "train.batch=4", "train.window=10"]
    chosen = [part for key in sizes + keys for part in ("--set", key)]
    asked("train", "quick", "--quiet", "--text", text, "--out", run, *chosen)
    hub = folder / f"{name}.hub"
    asked("export", run, "--onnx", path, "--hub", hub)
    (folder / f"{name}.txt").write_bytes((hub / "vocabulary.txt").read_bytes())
    prompts = []
    for prompt in PROMPTS:
        line = asked("generate", run, "--prompt", prompt, "--temperature", 0, "--max-words", 20, "--json")
        prompts.append({"prompt": prompt, "count": 20, "text": json.loads(line)["text"]})
    (folder / f"{name}.json").write_text(json.dumps({"prompts": prompts}))


def of_command(model, name):
    """How far losses are from those of `eval --tokens` and policies from those of `explain --json`, and how many it shows."""
    text, run = folder / f"{name}.read", folder / f"{name}.run"
    content = "she sees a whale of the Zebulon sea\ncall me l'été\n"
    text.write_text(content, newline="")
    told = [line.split("\t") for line in asked("eval", run, "--text", text, "--tokens").splitlines()]
    with contextlib.redirect_stderr(io.StringIO()):
        ids = model.read(content)
    names = [model.words[number] for number in ids]
    assert [line[0] for line in told] == names[1:], f"{told} for {names}"
    state, losses = model.zero_state(), []
    for number, following in zip(ids, ids[1:]):
        logits, state, _ = model.step([number], state)
        scores = logits[0].astype(np.float64)
        most = scores.max()
        losses.append(most + np.log(np.exp(scores - most).sum()) - scores[following])
    # Told in six digits.
    losses = max(furthest(losses, [float(line[1]) for line in told]) - 5e-7, 0.0)

    layers = json.loads(asked("explain", run, "--prompt", content, "--no-corpus", "--json"))["runs"][0]["layers"]
    expected = [[np.reshape(part["values"], (-1, part["width"])) for part in layer["parts"]] for layer in layers]
    expected = [np.concatenate(parts, 1) for parts in expected if parts]
    state, found = model.zero_state(), []
    for number in [model.line_end, *ids]:
        _, state, policies = model.step([number], state, with_policies=True)
        found.append([policy[0] for policy in policies])
    # Kernels show policies, and there are kernels for the adaptive LSTM.
    if not expected:
        return losses, 0.0, 0
    by_layer = [np.stack(of_layer) for of_layer in zip(*found)]
    assert len(by_layer) == len(expected), f"{len(by_layer)} policies for {len(expected)}"
    return losses, max(map(furthest, by_layer, expected)), len(expected)


def check_texts(model, reference):
    """The loop reads, remarks on and writes what `adaparam generate` does."""
    for case in reference["prompts"]:
        remarks = io.StringIO()
        with contextlib.redirect_stderr(remarks):
            text = model.text(generate.generate(model, case["prompt"], case["count"], 0, 1), case["prompt"])
            ids = model.read(case["prompt"])
        assert text == case["text"], f"{case['prompt']!r}: {text!r} for {case['text']!r}"
        assert ids == case.get("ids", ids), f"{case['prompt']!r}: {ids} for {case['ids']}"
        for name in case.get("unknown", []):
            assert f"`{name}` is not in the vocabulary" in remarks.getvalue(), remarks.getvalue()
    drawn = [list(generate.generate(model, "", 30, 1.0, seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2], "a seed decides what is drawn"
    assert model.unk is None or model.unk not in drawn[0]


for name, keys in TRAINED.items():
    train(name, keys)
paths = sorted(folder.glob("*.onnx"))
assert len(paths) > len(TRAINED), f"no models in {folder}"
policies_compared = 0
for path in paths:
    onnx.checker.check_model(str(path), full_check=True)
    reference = json.loads(path.with_suffix(".json").read_text())
    model = generate.Model(str(path))
    is_trained = path.stem in TRAINED
    scores, policies, count = of_command(model, path.stem) if is_trained else of_library(model, reference)
    what = "losses" if is_trained else "scores"
    assert scores <= TOLERANCE, f"{path.name}: {what} differ by {scores}"
    assert policies <= TOLERANCE, f"{path.name}: policies differ by {policies}"
    policies_compared += count
    check_texts(model, reference)
    print(f"{path.stem}: {what} differ by at most {scores:.1e}; {count} policies by {policies:.1e}")
assert policies_compared >= 30, f"only {policies_compared} policies were compared"

# As a person would call it.
told = subprocess.run(
    [sys.executable, f"{sys.argv[2]}/generate.py", folder / "trained-words.onnx", "--prompt", PROMPTS[1]]
    + ["--max-words", "20", "--temperature", "0"],
    check=True, capture_output=True, text=True,
)
assert "`Zebulon,` is not in the vocabulary: read as <unk>" in told.stderr, told.stderr
expected = json.loads((folder / "trained-words.json").read_text())["prompts"][1]["text"]
assert told.stdout == expected + "\n", told.stdout
