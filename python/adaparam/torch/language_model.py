"""Trained language models of the command as modules, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._runs import Trained, head_of, layers_of, open_trained, parameters_of
from .adaptive_lstm import AdaptiveLSTM
from .lstm import LSTM

__all__ = ["LanguageModel"]


class LanguageModel(nn.Module):
    """A language model that the command ``adaparam`` has trained: word vectors, recurrent layers, a softmax.

    Train it further as any module, and :meth:`save` it as a file that ``adaparam eval`` and ``adaparam generate`` open.

    Attributes:
        embedding: the word vectors, ``nn.Embedding``.
        layers: an :class:`LSTM` or :class:`AdaptiveLSTM`.
        decoder: ``nn.Linear``; its weight is that of ``embedding`` in a model with a tied softmax.

    Example:
        >>> model = LanguageModel.load("runs/quick-seed-1")  # doctest: +SKIP
        >>> scores, state = model(model.encode("call me")[:, None])  # doctest: +SKIP
    """

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        layers = layers_of(trained)
        of = layers.description
        sizes = of["input"], layers.hidden
        n_layers, skip = len(layers.hidden), of["skip"]
        if of["kind"] == "lstm":
            self.layers: nn.Module = LSTM(*sizes, n_layers, of["bias"], skip=skip)
        else:
            kinds = {name: of[name] for name in ("policy", "summary", "adaptation", "layout")}
            kinds |= {"policy_start": of["start"], "skip": skip}
            self.layers = AdaptiveLSTM(*sizes, of["latent"], n_layers, of["bias"], **kinds)
        vectors, matrix, bias = head_of(trained, layers.hidden[-1])
        self.embedding = nn.Embedding(*vectors.shape)
        self.decoder = nn.Linear(matrix.shape[1], matrix.shape[0])
        with torch.no_grad():
            self.embedding.weight.copy_(torch.from_numpy(vectors))
            self.decoder.weight.copy_(torch.from_numpy(matrix))
            self.decoder.bias.copy_(torch.from_numpy(bias))
            for names, values in zip(self.layers._names, parameters_of(trained, layers)):
                for name, value in zip(names, values):
                    getattr(self.layers, name).copy_(torch.from_numpy(value))
        self._is_tied = matrix is vectors
        if self._is_tied:
            self.decoder.weight = self.embedding.weight
        self._files = layers.names
        self._trained = trained
        self.eval()

    @classmethod
    def load(cls, path: str | Path) -> LanguageModel:
        """Opens the best checkpoint of a run's folder, a checkpoint's folder, a hub folder, or an exported file."""
        return cls(open_trained(path))

    def forward(self, ids: Tensor, state=None):
        """The scores ``[T, B, V]`` of every token as the next one, for ids ``[T, B]``, and the state to go on from."""
        output, state = self.layers(self.embedding(ids), state)
        return F.linear(output, self.decoder.weight, self.decoder.bias), state

    def encode(self, text: str) -> Tensor:
        """The ids ``[T]`` of a text, cut as the model's own texts are."""
        ids, _ = self._trained.vocabulary.encode(text)
        return torch.tensor(ids, dtype=torch.int64)

    def decode(self, ids: Tensor) -> str:
        """The text that ids spell."""
        return self._trained.vocabulary.decode(ids.flatten().tolist()).decode("utf-8", "replace")

    @property
    def line_end(self) -> int:
        """The id of the token that ends a line. A text begins behind one."""
        return self._trained.vocabulary.line_end

    def save(self, path: str | Path, replace: bool = False) -> None:
        """Writes a file that the command opens: ``adaparam eval FILE``, ``adaparam generate FILE``."""

        def array(tensor: Tensor) -> np.ndarray:
            return tensor.detach().to("cpu", torch.float32).numpy()

        tensors = {"encoder.weight": array(self.embedding.weight), "decoder.bias": array(self.decoder.bias)}
        if not self._is_tied:
            tensors["decoder.weight"] = array(self.decoder.weight)
        for names, files in zip(self.layers._names, self._files):
            tensors |= {file: array(getattr(self.layers, name)) for name, file in zip(names, files)}
        self._trained.save(path, tensors, replace)
