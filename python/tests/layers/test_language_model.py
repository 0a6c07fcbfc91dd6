"""Models of the command as modules, and back to files that the command opens."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from adaparam import _safetensors
from adaparam.numpy import load
from adaparam.torch import LanguageModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import test_numpy  # noqa: E402
from test_numpy import WORDS, file, kind  # noqa: E402, F401


def test_scores_are_those_without_pytorch_and_files_go_both_ways(file, tmp_path):  # noqa: F811
    model = LanguageModel.load(file)
    ids = torch.tensor([0, 1, 3, 2, 4])
    expected = load(file).scores(ids.numpy())
    with torch.no_grad():
        scores, state = model(ids[:, None])
    np.testing.assert_allclose(scores[:, 0].numpy(), expected, rtol=1e-4, atol=1e-5)
    assert model.decode(model.encode("a c")) == "a c"

    # Trained a little further, and written.
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    model(ids[:, None])[0].square().sum().backward()
    optimiser.step()
    with torch.no_grad():
        after = model(ids[:, None])[0][:, 0].numpy()
    path = tmp_path / "after.safetensors"
    model.save(path)
    np.testing.assert_allclose(load(path).scores(ids.numpy()), after, rtol=1e-4, atol=1e-5)
    with pytest.raises(FileExistsError, match="replace=True"):
        model.save(path)
    model.save(path, replace=True)


def test_layers_that_skip(tmp_path, kind, monkeypatch):  # noqa: F811
    monkeypatch.setattr(test_numpy, "HIDDEN", test_numpy.EMBEDDING)
    ids, found = torch.tensor([0, 1, 3, 2, 4]), []
    for skip in (False, True):
        config = test_numpy.config(kind)
        config["model"]["skip"] = skip
        path = tmp_path / f"skip-{skip}.safetensors"
        note = {"format": 3, "corpus": "sum", "vocabulary": "\n".join(WORDS) + "\n", "config": config}
        _safetensors.write(path, test_numpy.tensors(kind), note)
        model = LanguageModel.load(path)
        with torch.no_grad():
            found.append(model(ids[:, None])[0][:, 0].numpy())
        np.testing.assert_allclose(found[-1], load(path).scores(ids.numpy()), rtol=1e-4, atol=1e-5)
    assert not np.allclose(*found)
    model.save(tmp_path / "again.safetensors")
    np.testing.assert_allclose(load(tmp_path / "again.safetensors").scores(ids.numpy()), found[1], rtol=1e-4, atol=1e-5)


def test_the_command_opens_what_is_saved(tmp_path):
    program = os.environ.get("ADAPARAM_PROGRAM") or shutil.which("adaparam")
    if program is None:
        pytest.skip("the command adaparam is not installed: ADAPARAM_PROGRAM names it")
    run = tmp_path / "run"
    keys = ["--set", "train.epochs=1", "--set", "model.embedding=8", "--set", "model.hidden=8", "--set", "model.cell.latent=4"]
    subprocess.run([program, "--quiet", "train", "--out", run, *keys, "--set", "data.train_words=2000"], check=True, cwd=tmp_path)
    model = LanguageModel.load(run)
    saved = tmp_path / "saved.safetensors"
    model.save(saved)

    def text(of):
        command = [program, "--quiet", "generate", of, "--max-words", "20", "--precision", "f32"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert text(saved) == text(run)
