"""Holds onnxruntime against the references of the example `onnx_reference`: `python onnx_check.py FOLDER docs/onnx`."""

import json
import pathlib
import sys

import numpy as np
import onnx

folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, sys.argv[2])
import generate  # noqa: E402  (the documented loop is what is checked)

TOLERANCE = 1e-5

paths = sorted(folder.glob("*.onnx"))
assert paths, f"no models in {folder}"
for path in paths:
    onnx.checker.check_model(str(path), full_check=True)
    reference = json.loads(path.with_suffix(".json").read_text())
    model = generate.Model(str(path))
    (folder / f"{path.stem}.txt").write_text("\n".join(model.words) + "\n")
    state, worst, policies = model.zero_state(len(reference["steps"][0]["ids"])), 0.0, []
    for step in reference["steps"]:
        logits, state, policies = model.step(step["ids"], state, with_policies=True)
        expected = np.asarray(step["logits"], np.float32).reshape(logits.shape)
        worst = max(worst, float(np.abs(logits - expected).max()))
    assert worst <= TOLERANCE, f"{path.name}: scores differ by {worst}"
    words = " ".join(generate.generate(model, "", len(reference["likeliest"].split()), 0, 1))
    assert words == reference["likeliest"], f"{path.name}: {words}"
    is_adaptive = path.stem.startswith("adaptive")
    assert bool(policies) == is_adaptive, f"{path.name}: {len(policies)} policies"
    print(f"{path.stem}: scores differ by at most {worst:.1e}; {len(policies)} policies")
