"""Which stack of recurrent layers it is: what an operation needs to know besides its tensors."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache

from .. import _native

__all__ = ["AdaptiveShape", "LstmShape", "Shape", "native", "shape_of"]


@dataclass(frozen=True)
class LstmShape:
    """A stack of plain LSTM layers.

    ``between``: dropout acts on what goes from a layer to the next, and on nothing that is carried; else on hidden states.
    ``skip``: a layer that is as wide as its input adds it to what it gives, and not to what it carries.
    """

    input: int
    hidden: tuple[int, ...]
    bias: bool
    between: bool = False
    skip: bool = False

    kind = "lstm"
    n_states = 2

    def parameter_names(self) -> list[str]:
        """Of a layer, without its number, in the order of ``nn.LSTM``."""
        return ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if self.bias else [])]


@dataclass(frozen=True)
class AdaptiveShape:
    """A stack of adaptive LSTM layers."""

    input: int
    hidden: tuple[int, ...]
    latent: int
    bias: bool
    between: bool = False
    policy: str = "recurrent"
    summary: str = "hybrid"
    adaptation: str = "io"
    layout: str = "paper"
    start: str = "paper"
    skip: bool = False

    kind = "adaptive_lstm"

    @property
    def n_states(self) -> int:
        return 4 if self.policy == "recurrent" else 3

    @property
    def is_hybrid(self) -> bool:
        """Whether latent variables see that of another layer."""
        return self.summary == "hybrid" and len(self.hidden) > 1

    def parameter_names(self) -> list[str]:
        """Of a layer, without its number."""
        recurrent = self.policy == "recurrent"
        return [
            "latent_weight_ih",
            *(["latent_weight_hh"] if recurrent else []),
            "latent_bias_ih",
            *(["latent_bias_hh"] if recurrent else []),
            "projection",
            "weight_ih",
            "weight_hh",
            *(["bias"] if self.bias else []),
        ]

    def parts(self, d_input: int, d_hidden: int, d_given: int | None = None) -> list[tuple[str, int, int]]:
        """Name, start and size of each part of a layer's policy. ``d_given`` is the size of a projected hidden state."""
        sizes = []
        if self.adaptation != "output":
            sizes += [("input", d_input), ("hidden", d_given or d_hidden)]
        if self.adaptation != "input":
            sizes += [("input_product", 4 * d_hidden), ("hidden_product", 4 * d_hidden)]
        if self.bias:
            sizes += [("bias", 4 * d_hidden)]
        parts, width, before = [], 0, 0
        for name, size in sizes:
            parts.append((name, width if self.layout == "paper" else before, size))
            width, before = width + size, size
        return parts

    def policy_width(self, d_input: int, d_hidden: int, d_given: int | None = None) -> int:
        """Numbers of a layer's policy."""
        return sum(size for _, _, size in self.parts(d_input, d_hidden, d_given))


Shape = LstmShape | AdaptiveShape


@lru_cache(maxsize=None)
def description(shape: Shape) -> str:
    """The shape as a text."""
    return json.dumps({"kind": shape.kind, **asdict(shape)})


@lru_cache(maxsize=None)
def shape_of(text: str) -> Shape:
    """The shape that a text describes."""
    values = json.loads(text)
    kind = {"lstm": LstmShape, "adaptive_lstm": AdaptiveShape}[values.pop("kind")]
    return kind(**{**values, "hidden": tuple(values["hidden"])})


@lru_cache(maxsize=None)
def native(text: str) -> _native.Stack:
    """What the kernels know about the stack that a text describes."""
    return _native.Stack(text)


@lru_cache(maxsize=None)
def _state_sizes(text: str) -> tuple[tuple[int, int], ...]:
    """Of each kind of state, layers and the numbers of a layer for one row; zero and those of all layers where they differ."""
    hidden = shape_of(text).hidden
    layers = len(hidden) if len(set(hidden)) == 1 else 0
    return tuple((layers, width // layers) if layers else (0, width) for width in native(text).state_widths)


def state_shapes(text: str, batch: int) -> list[tuple[int, ...]]:
    """Of each kind of state: ``[L, B, width]``, or flat where layers have different widths, those of a layer after the other."""
    return [(layers, batch, width) if layers else (batch * width,) for layers, width in _state_sizes(text)]


@lru_cache(maxsize=None)
def site_names(text: str) -> tuple[str, ...]:
    """The places where dropout acts."""
    return tuple(name for name, _ in native(text).sites)


@lru_cache(maxsize=None)
def parameter_shapes(text: str) -> tuple[tuple[int, ...], ...]:
    """Of every parameter, in the order in which operations are given them."""
    return tuple(tuple(shape) for _, shape in native(text).parameters)
