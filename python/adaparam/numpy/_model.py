"""A trained language model on NumPy arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .. import _native
from .._runs import head_of, layers_of, open_trained, parameters_of

__all__ = ["Model", "load"]

# Steps that are read at once; between them Ctrl-C is heard.
_STEPS = 256


def load(path: str | Path, threads: int | None = None) -> Model:
    """Opens a trained model: the best checkpoint of a run's folder, a checkpoint's folder, a hub folder, or an exported file.

    Args:
        path: as in ``adaparam generate PATH``.
        threads: of the kernels; all processors that there are, without it.
    """
    return Model(path, threads)


class Model:
    """A trained language model that reads and writes texts. See :func:`load`.

    Attributes:
        path: the checkpoint or file that it came from.
        config: the configuration of its run.
        vocabulary: the names of all tokens, by id.
        weights: every parameter, under the name that it has in exported files.
    """

    def __init__(self, path: str | Path, threads: int | None = None) -> None:
        trained = open_trained(path)
        layers = layers_of(trained)
        self.path = trained.path
        self.config = trained.config
        self.weights = trained.tensors
        self._vocabulary = trained.vocabulary
        self.vocabulary: list[str] = trained.vocabulary.names
        self.threads = threads or os.cpu_count() or 1
        self._stack = _native.Stack(json.dumps(layers.description))
        self._parameters = [one for layer in parameters_of(trained, layers) for one in layer]
        self._words, self._matrix, self._bias = head_of(trained, self._stack.d_output)
        self._owner = _native.Owner()

    def __repr__(self) -> str:
        cell = self.config["model"]["cell"]["kind"]
        return f"Model({str(self.path)!r}: {cell}, {len(self.vocabulary)} {self._vocabulary.tokens})"

    def encode(self, text: str) -> np.ndarray:
        """The ids ``[T]`` of a text, cut as the model's own texts are. What it does not know is read as ``<unk>``, or is an error."""
        ids, unknown = self._vocabulary.encode(text)
        if unknown and self._vocabulary.unknown is None:
            raise ValueError(f"{unknown[0]!r} is not in the vocabulary, and it has no <unk>")
        return np.array(ids, np.int64)

    def decode(self, ids: Sequence[int]) -> str:
        """The text that ids spell."""
        return self._vocabulary.decode([int(id) for id in ids]).decode("utf-8", "replace")

    def scores(self, ids: Sequence[int] | np.ndarray) -> np.ndarray:
        """The scores of every token as the next one, before the softmax.

        A text begins behind the end of a line: put ``model.line_end`` first for what the command computes.

        Args:
            ids: ``[T]``, or ``[T, B]`` for several texts side by side.

        Returns:
            ``[T, V]``, or ``[T, B, V]``.
        """
        ids = self._ids(ids)
        columns = ids.reshape(len(ids), -1)
        outputs, _ = self._read(columns, None)
        scores = outputs @ self._matrix.T + self._bias
        return scores.reshape(*ids.shape, -1)

    def log_probabilities(self, ids: Sequence[int] | np.ndarray) -> np.ndarray:
        """``ln p(token | tokens before)`` of every token, the first one behind the end of a line; of the shape of ``ids``."""
        ids = self._ids(ids)
        before = np.concatenate([np.full_like(ids[:1], self.line_end), ids[:-1]])
        scores = self.scores(before).astype(np.float64)
        highest = scores.max(-1, keepdims=True)
        total = highest[..., 0] + np.log(np.exp(scores - highest).sum(-1))
        return np.take_along_axis(scores, ids[..., None], -1)[..., 0] - total

    def perplexity(self, text: str) -> float:
        """``exp`` of what a token of a text costs on average."""
        return float(np.exp(-self.log_probabilities(self.encode(text)).mean()))

    def policies(self, ids: Sequence[int] | np.ndarray) -> dict[str, np.ndarray]:
        """What the layers computed for every token: how an adaptive LSTM adapted its weights.

        Args:
            ids: ``[T]``, or ``[T, B]``.

        Returns:
            By name ``[T, width]``, or ``[T, B, width]``: ``layers.0.policy.input`` and other parts of the policy,
            ``layers.0.latent.hidden``, ``layers.0.gates`` in the order i, f, z, o, and states. A plain LSTM has no policy.
        """
        ids = self._ids(ids)
        columns = ids.reshape(len(ids), -1)
        x = self._inputs(columns)
        steps, batch = columns.shape
        seen = _native.inspect(
            self._stack, self.threads, _numbers(x), steps, batch, [_numbers(one) for one in self._parameters], []
        )
        return {name: np.frombuffer(data, np.float32).reshape(*ids.shape, width) for name, width, data in seen}

    def generate(
        self,
        prompt: str = "",
        length: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 1,
        unknown: bool = False,
    ) -> str:
        """A prompt and the text that the model draws after it.

        Args:
            prompt: text to begin with.
            length: how many tokens are drawn.
            temperature: below 1 for likelier tokens, above 1 for rarer ones, 0 for the likeliest.
            top_k: draw from so many of the likeliest tokens only; 0 for all.
            top_p: draw from the likeliest tokens only that together have this probability; 1 for all.
            seed: of the draws. They are NumPy's: the command draws other texts.
            unknown: draw ``<unk>`` like any token, instead of never.
        """
        if not (temperature >= 0 and np.isfinite(temperature)):
            raise ValueError(f"temperature = {temperature}: must be a number of at least 0")
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p = {top_p}: must be above 0 and at most 1")
        if top_k < 0 or length < 0:
            raise ValueError(f"top_k = {top_k}, length = {length}: must be at least 0")
        draws = np.random.default_rng(seed)
        ids = [int(id) for id in self.encode(prompt)]
        never = None if unknown else self._vocabulary.unknown
        outputs, state = self._read(np.array([[self.line_end], *([id] for id in ids)]), None)
        for _ in range(length):
            scores = (outputs[-1] @ self._matrix.T + self._bias)[0].astype(np.float64)
            if never is not None:
                scores[never] = -np.inf
            ids.append(_draw(scores, temperature, top_k, top_p, draws))
            outputs, state = self._read(np.array([[ids[-1]]]), state)
        return self.decode(ids)

    @property
    def line_end(self) -> int:
        """The id of the token that ends a line. A text begins behind one."""
        return self._vocabulary.line_end

    def _ids(self, ids) -> np.ndarray:
        ids = np.asarray(ids)
        if ids.size == 0 or ids.ndim not in (1, 2):
            raise ValueError(f"ids: has shape {list(ids.shape)}, must be [T] or [T, B] with at least one token")
        if not np.issubdtype(ids.dtype, np.integer):
            raise TypeError(f"ids: has dtype {ids.dtype}, must be whole numbers")
        if ids.min() < 0 or ids.max() >= len(self.vocabulary):
            raise ValueError(f"ids: must be from 0 to {len(self.vocabulary) - 1}, got {ids.min()} to {ids.max()}")
        return ids.astype(np.int64)

    def _inputs(self, columns: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self._words[columns])

    def _read(self, columns: np.ndarray, state: list[np.ndarray] | None) -> tuple[np.ndarray, list[np.ndarray]]:
        """Outputs of the layers ``[T, B, D]`` for ids ``[T, B]``, and the state to go on from."""
        every = []
        for first in range(0, len(columns), _STEPS):
            x = self._inputs(columns[first : first + _STEPS])
            steps, batch, _ = x.shape
            output = np.empty((steps, batch, self._stack.d_output), np.float32)
            finals = [np.empty(batch * width, np.float32) for width in self._stack.state_widths]
            _native.forward(
                self._stack,
                self._owner.id,
                self.threads,
                "float32",
                _numbers(x),
                steps,
                batch,
                [_numbers(one) for one in self._parameters],
                [0] * len(self._parameters),
                [] if state is None else [_numbers(part) for part in state],
                [],
                None,
                _numbers(output),
                [_numbers(final) for final in finals],
                False,
            )
            every.append(output)
            state = finals
        return np.concatenate(every), state


def _numbers(array: np.ndarray) -> tuple[int, int]:
    return array.ctypes.data, array.size


def _draw(scores: np.ndarray, temperature: float, top_k: int, top_p: float, draws: np.random.Generator) -> int:
    """A token, drawn by its score."""
    if temperature == 0:
        return int(scores.argmax())
    if 0 < top_k < len(scores):
        scores = np.where(scores >= np.partition(scores, -top_k)[-top_k], scores, -np.inf)
    weights = np.exp((scores - scores.max()) / temperature)
    if top_p < 1:
        order = np.argsort(-weights, kind="stable")
        total = np.cumsum(weights[order])
        weights[order[1:][total[:-1] >= top_p * total[-1]]] = 0
    return int(draws.choice(len(weights), p=weights / weights.sum()))
