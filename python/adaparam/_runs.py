"""Trained models of the command ``adaparam``: runs, checkpoints, exported files and folders."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import _native, _safetensors

_FILES = ("weights.safetensors", "optimiser.safetensors", "state.safetensors", "vocabulary.txt", "checkpoint.json")
_HUB = ("model.safetensors", "config.json")
_CHECKPOINT = re.compile(r"step-(\d+)(?:-epoch-(\d+))?")


@dataclass
class Trained:
    """A trained model as its files have it."""

    path: Path
    """The checkpoint or file that it came from."""
    config: dict
    """The configuration of its run."""
    vocabulary: _native.Vocabulary
    vocabulary_text: str
    corpus: str
    """The sum of the texts that it was trained on."""
    tensors: dict[str, np.ndarray]
    """The weights that it is evaluated with, under the names of the released code."""

    def save(self, path: str | Path, tensors: dict[str, np.ndarray], replace: bool = False) -> None:
        """Writes these weights as a file that the command opens."""
        path = Path(path)
        if path.exists() and not replace:
            raise FileExistsError(f"{path}: exists already; replace=True replaces it")
        for name, tensor in tensors.items():
            if not np.isfinite(tensor).all():
                raise ValueError(f"{name}: has a value that is not a finite number")
        note = {"format": 3, "corpus": self.corpus, "vocabulary": self.vocabulary_text, "config": self.config}
        _safetensors.write(path, tensors, note)


def open_trained(path: str | Path) -> Trained:
    """The best checkpoint of a run's folder, a checkpoint's folder, a hub folder, or an exported file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    if path.is_file():
        return _open_file(path)
    if (path / "checkpoint.json").is_file():
        return _open_checkpoint(path)
    if _is_hub(path):
        return _open_hub(path)
    return _open_run(path)


def _open_file(path: Path) -> Trained:
    content = path.read_bytes()
    tensors, text = _safetensors.parse(str(path), content)
    if text is None:
        raise ValueError(
            f"{path}: has no configuration and vocabulary in its metadata; make a run of it with `adaparam import`"
        )
    note = _json(str(path), text)
    _safetensors.check_sum(str(path), content, note)
    if note.get("format") not in (2, 3):
        raise ValueError(
            f"{path}: format = {note.get('format')}: this package reads formats 2 and 3; `adaparam export` writes it anew"
        )
    return _trained(path, note, note["vocabulary"], tensors)


def _is_hub(folder: Path) -> bool:
    """Whether a folder is one of ``adaparam export --hub``, or was before a file was lost."""
    weights, about, words, is_run = ((folder / name).is_file() for name in (*_HUB, "vocabulary.txt", "config.toml"))
    return (weights and about) or (not is_run and (weights or about) and words)


def _open_hub(folder: Path) -> Trained:
    """A folder of ``adaparam export --hub``, whose files have to fit each other."""
    weights, about = (folder / name for name in _HUB)
    words = folder / "vocabulary.txt"
    for one in (about, weights, words):
        if not one.is_file():
            raise FileNotFoundError(f"{one}: there is no such file, and a hub folder has one")
    head = _json(str(about), about.read_text("utf-8"))
    for key, value in (("model_type", "adaparam"), ("format", 1)):
        if head.get(key) != value:
            raise ValueError(f"{about}: {key} = {head.get(key)!r}: this package reads {value!r}; `adaparam export --hub` writes it")
    for one in (weights, words):
        if hashlib.sha256(one.read_bytes()).hexdigest() != dict(head.get("sha256") or {}).get(one.name):
            raise ValueError(
                f"{one}: is not the file that config.json tells of, by its SHA-256: bring the right one back, or export the folder again"
            )
    trained = _open_file(weights)
    for one, fits in ((words, words.read_text("utf-8") == trained.vocabulary_text), (about, head.get("config") == trained.config)):
        if not fits:
            raise ValueError(f"{one}: is not that of {weights.name}: export the folder again")
    return trained


def _open_run(run: Path) -> Trained:
    """The best checkpoint; the newest while no epoch is finished."""
    found = [one for one in (run / "checkpoints").glob("step-*") if _CHECKPOINT.fullmatch(one.name)]
    found.sort(key=lambda one: _place(one.name))
    for newest in reversed(found):
        problem = _damage(newest)
        if problem is None:
            break
        warnings.warn(f"{newest}: the checkpoint is damaged: {problem}; an earlier one is taken", stacklevel=4)
    else:
        rule = "every checkpoint is damaged" if found else "holds no checkpoint: name the folder of a run of `adaparam train`"
        raise ValueError(f"{run}: {rule}")
    best = _json(str(newest / "checkpoint.json"), (newest / "checkpoint.json").read_text("utf-8"))["counters"].get("best")
    if best is None:
        return _open_checkpoint(newest)
    if not _CHECKPOINT.fullmatch(best["checkpoint"]):
        raise ValueError(f"{newest}: counters.best.checkpoint = {best['checkpoint']!r}: is no name of a checkpoint")
    return _open_checkpoint(run / "checkpoints" / best["checkpoint"])


def _place(name: str) -> tuple[int, int]:
    updates, epoch = _CHECKPOINT.fullmatch(name).groups()
    return int(updates), -1 if epoch is None else int(epoch)


def _damage(folder: Path) -> str | None:
    """What is wrong with the files of a checkpoint, by their sums."""
    try:
        sums = (folder / "SHA256SUMS").read_text("utf-8").splitlines()
        for name in _FILES:
            if f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}" not in sums:
                return f"{name} is not what was written"
    except OSError as error:
        return str(error)
    return None


def _open_checkpoint(folder: Path) -> Trained:
    problem = _damage(folder)
    if problem is not None:
        raise ValueError(f"{folder}: the checkpoint is damaged: {problem}; name another one")
    place = folder / "checkpoint.json"
    head = _json(str(place), place.read_text("utf-8"))
    if head.get("format") != 2:
        raise ValueError(f"{place}: format = {head.get('format')}: this package reads format 2; `adaparam export` reads others")

    def tensors(name: str) -> dict[str, np.ndarray]:
        return _safetensors.parse(str(folder / name), (folder / name).read_bytes())[0]

    weights = tensors("weights.safetensors")
    if head["optimiser"].get("averaged", 0) > 0:
        kept = tensors("optimiser.safetensors")
        weights = {name: kept[f"average.{name}"] for name in weights}
    return _trained(folder, head, (folder / "vocabulary.txt").read_text("utf-8"), weights)


def _json(place: str, text: str) -> dict:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{place}: is not understood: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{place}: is not understood: must be a JSON object")
    return value


def _trained(path: Path, head: dict, vocabulary: str, tensors: dict[str, np.ndarray]) -> Trained:
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"{path}: {name} has a value that is not a finite number: name another checkpoint")
    return Trained(
        path=path,
        config=head["config"],
        vocabulary=_native.Vocabulary(str(path), vocabulary),
        vocabulary_text=vocabulary,
        corpus=head["corpus"],
        tensors=tensors,
    )


@dataclass
class Layers:
    """The recurrent layers of a model, as the kernels know them."""

    description: dict
    """Of the stack."""
    names: list[list[str]]
    """For each layer, the names of its parameters in files, in the order of the stack."""
    hidden: list[int]


def layers_of(trained: Trained) -> Layers:
    """The layers of a model, if the kernels know them."""
    model = trained.config["model"]
    cell = model["cell"]
    kind = cell["kind"]
    is_known = kind == "lstm" or (kind == "adaptive-lstm" and cell["tying"] == "tied")
    if not is_known:
        what = f"model.cell.tying = {cell['tying']}" if kind == "adaptive-lstm" else f"model.cell.kind = {kind}"
        raise ValueError(
            f"{trained.path}: {what}: only models of lstm, and of adaptive-lstm with tying = tied, open in Python; "
            "`adaparam generate` and `adaparam eval` open this one"
        )
    n_layers = model["layers"]
    hidden = [model["hidden"]] * (n_layers - 1) + [model.get("output", 0) or model["embedding"]]
    common = {"input": model["embedding"], "hidden": hidden, "between": False, "bias": cell["bias"], "skip": model["skip"]}
    if kind == "lstm":
        fields = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if cell["bias"] else [])]
        names = [[f"rnns.{layer}.{field}_l0" for field in fields] for layer in range(n_layers)]
        return Layers({"kind": "lstm", **common}, names, hidden)
    static = cell["policy"] == "static"
    fields = ["weight", "bias"] if static else ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    main = ["weight_ih", "weight_hh", *(["bias"] if cell["bias"] else [])]
    names = [
        [
            *(f"rnns.adapt_layers.{layer}.{field}" for field in fields),
            f"rnns.project_layers.{layer}.linear.weight",
            *(f"rnns.alstm_layers.{layer}.{field}" for field in main),
        ]
        for layer in range(n_layers)
    ]
    description = {
        "kind": "adaptive_lstm",
        "latent": cell["latent"],
        "policy": cell["policy"],
        "summary": cell["summary"] if n_layers > 1 else "own",
        "adaptation": cell["adaptation"],
        "layout": cell["layout"],
        "start": cell["policy_start"],
    }
    return Layers({**description, **common}, names, hidden)


def parameters_of(trained: Trained, layers: Layers) -> list[list[np.ndarray]]:
    """Of each layer, the parameters in the order of the stack, each with the shape that it must have."""
    shapes = iter(_native.Stack(json.dumps(layers.description)).parameters)
    every = []
    for names in layers.names:
        parameters = []
        for name in names:
            _, shape = next(shapes)
            tensor = trained.tensors.get(name)
            if tensor is None and name.endswith("bias_hh_l0"):
                # A layer with one bias.
                tensor = np.zeros(shape, np.float32)
            if tensor is None:
                raise ValueError(f"{trained.path}: {name} is missing: this is a model of another architecture")
            if list(tensor.shape) != list(shape):
                raise ValueError(f"{trained.path}: {name} has shape {list(tensor.shape)}, must be {list(shape)}")
            parameters.append(np.ascontiguousarray(tensor))
        every.append(parameters)
    return every


def head_of(trained: Trained, d_output: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Word vectors ``[V, E]``, the weights ``[V, D]`` of the softmax, and its bias ``[V]``."""
    kind = trained.config["model"]["head"]["kind"]
    if kind not in ("tied-softmax", "softmax"):
        raise ValueError(f"{trained.path}: model.head.kind = {kind}: only tied-softmax and softmax are known here; use the command")
    words, width = len(trained.vocabulary), trained.config["model"]["embedding"]
    own = "encoder.weight" if kind == "tied-softmax" else "decoder.weight"
    found = []
    for name, shape in [("encoder.weight", (words, width)), (own, (words, d_output)), ("decoder.bias", (words,))]:
        tensor = trained.tensors.get(name)
        if tensor is None or tensor.shape != shape:
            has = "is missing" if tensor is None else f"has shape {list(tensor.shape)}"
            raise ValueError(f"{trained.path}: {name} {has}, must be {list(shape)}")
        found.append(tensor)
    return tuple(found)
