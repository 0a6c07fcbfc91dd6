"""``adaparam.load`` opens the folders of ``adaparam export --hub``, and files whose weights have two bytes."""

import hashlib
import json

import numpy as np
import pytest
from test_numpy import WORDS, config, tensors

from adaparam import _safetensors
from adaparam.numpy import load

TEXT = "\n".join(WORDS) + "\n"


def stored(kind, dtype):
    """A model file as the command writes it with ``--dtype``, and the numbers that it holds."""
    note = {"format": 3, "corpus": "sum", "vocabulary": TEXT, "config": config("lstm"), "sha256": _safetensors.NO_SUM}
    header, parts, held, start = {"__metadata__": {_safetensors.NOTE: json.dumps(note)}}, [], {}, 0
    for name, tensor in tensors(kind).items():
        if dtype == "BF16":
            bits = tensor.view(np.uint32)
            half = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # to the nearest, ties to even
            part, held[name] = half.astype("<u2").tobytes(), (half << 16).astype(np.uint32).view(np.float32)
        else:
            part, held[name] = tensor.astype("<f2").tobytes(), tensor.astype(np.float16).astype(np.float32)
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [start, start + len(part)]}
        parts.append(part)
        start += len(part)
    head = json.dumps(header).encode()
    content = bytearray(len(head).to_bytes(8, "little") + head + b"".join(parts))
    at = content.index(_safetensors.NO_SUM.encode())
    content[at : at + 64] = hashlib.sha256(content).hexdigest().encode()
    return bytes(content), held


def write_hub(folder, content, **changes):
    folder.mkdir(exist_ok=True)
    sums = {name: hashlib.sha256(of).hexdigest() for name, of in (("model.safetensors", content), ("vocabulary.txt", TEXT.encode()))}
    about = {"model_type": "adaparam", "format": 1, "sha256": sums, "config": config("lstm")}
    (folder / "config.json").write_text(json.dumps({**about, **changes}))
    (folder / "model.safetensors").write_bytes(content)
    (folder / "vocabulary.txt").write_text(TEXT)
    return folder


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_weights_of_two_bytes_are_the_numbers_that_were_stored(tmp_path, dtype):
    content, held = stored("lstm", dtype)
    path = tmp_path / "half.safetensors"
    path.write_bytes(content)
    model = load(path)
    assert not np.array_equal(held["encoder.weight"], tensors("lstm")["encoder.weight"])
    for name, expected in held.items():
        assert np.array_equal(model.weights[name], expected), name
    # The same weights as f32 give the same scores.
    whole = tmp_path / "whole.safetensors"
    _safetensors.write(whole, held, {"format": 3, "corpus": "sum", "vocabulary": TEXT, "config": config("lstm")})
    assert np.array_equal(model.scores([0, 1, 3]), load(whole).scores([0, 1, 3]))


def test_a_hub_folder_opens_as_its_file_does(tmp_path):
    content, _ = stored("lstm", "BF16")
    folder = write_hub(tmp_path / "hub", content)
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    assert np.array_equal(load(folder).scores([0, 1, 3]), load(file).scores([0, 1, 3]))


def test_a_hub_folder_whose_files_do_not_fit_is_refused(tmp_path):
    content, _ = stored("lstm", "BF16")
    folder = write_hub(tmp_path / "hub", content)
    (folder / "vocabulary.txt").write_text(TEXT.replace("a", "z"))
    with pytest.raises(ValueError, match="vocabulary.txt: is not the file that config.json tells of"):
        load(folder)
    write_hub(folder, content)
    (folder / "model.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match="model.safetensors: is not the file that config.json tells of"):
        load(folder)
    other = config("lstm")
    other["model"]["hidden"] += 1
    with pytest.raises(ValueError, match="config.json: is not that of model.safetensors"):
        load(write_hub(folder, content, config=other))
    with pytest.raises(ValueError, match="model_type = 'gpt2'"):
        load(write_hub(folder, content, model_type="gpt2"))
    with pytest.raises(ValueError, match="format = 9"):
        load(write_hub(folder, content, format=9))
    for name in ("model.safetensors", "config.json", "vocabulary.txt"):
        write_hub(folder, content)
        (folder / name).unlink()
        with pytest.raises(FileNotFoundError, match=f"{name}: there is no such file"):
            load(folder)
