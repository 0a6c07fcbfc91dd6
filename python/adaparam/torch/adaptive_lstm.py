"""The adaptive LSTM."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import _register_namedtuple

from . import readable
from ._recurrent import Recurrent, one_of, one_of_kind, positive, probability
from ._shape import AdaptiveShape
from .lstm import LSTM

__all__ = ["AdaptiveLSTM", "AdaptiveState"]


class AdaptiveState(NamedTuple):
    """What an adaptive LSTM carries from step to step, of all layers.

    Shapes: ``h_n`` and ``c_n`` are ``[D L, B, H]`` as those of ``nn.LSTM``; ``z_n`` and ``z_cell_n`` are ``[D L, B, A]``. A static
    policy has no ``z_cell_n``.
    """

    h_n: Tensor
    c_n: Tensor
    z_n: Tensor
    z_cell_n: Tensor | None = None


# So that exported programs that give one can be saved.
_register_namedtuple(AdaptiveState, serialized_type_name="adaparam.torch.AdaptiveState")


class AdaptiveLSTM(Recurrent):
    r"""An LSTM whose weights are adapted to every input: Flennerhag et al. (2018), section 3.

    A policy looks at the input and the hidden state and gives factors for the inputs and outputs of the weight matrices:

    .. code-block:: text

        v = [x ; h ; z of the layer below]           what the policy sees        eq. (9)
        z = LSTM(v, z)   or   relu(W v + b)          recurrent or static         eq. (7), (6)
        pi = tanh(U z)   or   1 + tanh(U z)          the factors
        u = pi3 * W (pi1 * x) + pi4 * V (pi2 * h) + pi0 * b                      eq. (8)
        c, h from u as in an LSTM                                                eq. (5)

    A new layer's latent variable is small, and so are factors ``tanh(U z)``: as the paper has it, which is the default, a new layer
    says almost nothing, the layer above it less, and gradients shrink likewise. With 1, 2, 3 and 4 layers (``I`` 16, ``H`` 32, ``A`` 8)
    the root mean square of a new stack's output is about 5e-5, 5e-10, 1e-15 and 0. The paper's Adam learns with one or two layers
    nevertheless, as it divides gradients by their size, if its ``eps`` is small beside them: ``torch.optim.Adam(..., eps=1e-9)``.
    ``policy_start="identity"`` begins near the LSTM of the same weights instead, at any depth and with any optimiser.

    A window, forward and backward, is one operation each, on ``float32`` tensors of the CPU. Elsewhere, and with ``proj_size``, with
    ``dropout`` between layers of a hybrid summary, or with ``dropout`` together with a variational one, ordinary PyTorch computes.

    Args:
        input_size: ``I``, numbers of an input.
        hidden_size: ``H``, numbers of the hidden state; or a list, one for each layer.
        latent_size: ``A``, numbers of the policy's latent variable.
        num_layers: ``L``.
        bias: whether the main cells have a bias. The policies have theirs in any case.
        batch_first: sequences are ``[B, T, I]`` instead of ``[T, B, I]``. The state is not affected.
        dropout: probability of dropping a number of what goes from a layer to the next, another draw at every step.
        bidirectional: layers read forward and backward, ``D = 2`` instead of 1. Several layers then need ``summary="own"``.
        proj_size: ``P``, the size that hidden states are projected to; 0 for no projection.
        policy: ``"recurrent"``, the latent variable is an LSTM's; or ``"static"``, a layer with ReLU.
        summary: ``"hybrid"``, a policy also sees the latent variable of the layer below, the lowest one that of the highest a step
            earlier; or ``"own"``. A single layer has no other one to see.
        adaptation: ``"io"``, factors for inputs and outputs of the matrices; or ``"input"`` or ``"output"`` alone.
        policy_start: what the factors are before anything is learned: ``"paper"``, ``tanh(U z)``, near 0; or ``"identity"``,
            ``1 + tanh(U z)``, near 1, for several layers and for any optimiser. See above.
        layout: ``"paper"``, the parts of a policy lie one after the other; or ``"released"``, they overlap as in the released code.
        dropout_hidden: variational dropout of the hidden states: the same numbers at every step of a window. It also acts on what is
            carried; the output of the highest layer is not affected.
        dropout_latent: likewise of the latent variables.
        latent_state: whether the state has the latent variables. Without them it is ``(h_n, c_n)`` as that of ``nn.LSTM``, and every
            call starts with latent variables of zeros.
        skip: a layer that is as wide as its input adds it to what it gives; what it carries to the next step is not affected.
        execution: ``"auto"``, ``"fused"`` for an error where the kernels cannot compute, or ``"readable"`` for ordinary PyTorch.

    Shapes:
        - input: ``[T, B, I]``, ``[B, T, I]``, ``[T, I]`` for one sequence, or a ``PackedSequence``
        - state: an :class:`AdaptiveState`. ``(h_0, c_0)`` alone will do to begin with; latent variables are zeros then
        - output: ``[T, B, D H]``, or as the input

    Parameters of layer ``0``: ``latent_weight_ih_l0``, ``latent_weight_hh_l0``, ``latent_bias_ih_l0``, ``latent_bias_hh_l0`` (the
    policy's latent network), ``projection_l0`` (``U``), ``weight_ih_l0``, ``weight_hh_l0``, ``bias_l0`` (the main cell).

    Example:
        >>> lstm = AdaptiveLSTM(10, 20, latent_size=5, num_layers=2)
        >>> output, state = lstm(torch.randn(4, 3, 10))
        >>> output, state = lstm(torch.randn(4, 3, 10), state)
        >>> output.shape, state.h_n.shape, state.z_n.shape
        (torch.Size([4, 3, 20]), torch.Size([2, 3, 20]), torch.Size([2, 3, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | list[int],
        latent_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype=None,
        *,
        policy: str = "recurrent",
        summary: str = "hybrid",
        adaptation: str = "io",
        policy_start: str = "paper",
        layout: str = "paper",
        dropout_hidden: float = 0.0,
        dropout_latent: float = 0.0,
        latent_state: bool = True,
        skip: bool = False,
        execution: str = "auto",
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            dropout_hidden,
            skip,
            execution,
        )
        self.latent_size = positive("latent_size", latent_size)
        self.policy = one_of("policy", policy, ("recurrent", "static"))
        self.summary = one_of("summary", summary, ("hybrid", "own"))
        self.adaptation = one_of("adaptation", adaptation, ("io", "input", "output"))
        self.policy_start = one_of("policy_start", policy_start, ("paper", "identity"))
        self.layout = one_of("layout", layout, ("paper", "released"))
        self.dropout_latent = probability("dropout_latent", dropout_latent)
        self.latent_state = bool(latent_state)
        if self.bidirectional and self.num_layers > 1 and self.summary == "hybrid":
            raise ValueError(
                "summary = 'hybrid' with bidirectional: the lowest layer would see the highest one's latent variable of the step "
                "before, which the other direction has not computed; choose summary = 'own'"
            )
        self._register(device, dtype)

    @classmethod
    def from_lstm(cls, lstm: nn.LSTM, latent_size: int, **options) -> AdaptiveLSTM:
        """An adaptive LSTM that begins as exactly the function of an ``nn.LSTM``, or of our ``LSTM``.

        It starts from the identity with a projection of zeros, so that every factor is 1 until it learns otherwise. ``options`` are
        further arguments.
        """
        one_of_kind("from_lstm", lstm, nn.LSTM, LSTM)
        if lstm.proj_size:
            raise ValueError(f"from_lstm: proj_size = {lstm.proj_size}: only layers without a projection can be taken over")
        options = {"policy_start": "identity", "skip": getattr(lstm, "skip", False), **options}
        if options["policy_start"] != "identity":
            raise ValueError(f"policy_start = {options['policy_start']!r}: only 'identity' begins as the layer that is taken over")
        if lstm.bidirectional and lstm.num_layers > 1:
            options = {"summary": "own", **options}
        weight = lstm.weight_ih_l0
        sizes = getattr(lstm, "hidden_sizes", lstm.hidden_size)
        own = cls(
            lstm.input_size,
            list(sizes) if isinstance(sizes, tuple) else sizes,
            latent_size,
            lstm.num_layers,
            lstm.bias,
            lstm.batch_first,
            lstm.dropout,
            lstm.bidirectional,
            device=weight.device,
            dtype=weight.dtype,
            **options,
        )
        with torch.no_grad():
            for suffix in own._suffixes():
                for name in ("weight_ih", "weight_hh"):
                    getattr(own, name + suffix).copy_(getattr(lstm, name + suffix))
                getattr(own, "projection" + suffix).zero_()
                if lstm.bias:
                    both = getattr(lstm, "bias_ih" + suffix) + getattr(lstm, "bias_hh" + suffix)
                    getattr(own, "bias" + suffix).copy_(both)
        return own.train(lstm.training)

    def forward(self, input: Tensor, hx=None, lengths: Tensor | None = None) -> tuple[Tensor, AdaptiveState]:
        """Outputs, and the state after the last step.

        Args:
            input: the sequences; see the class.
            hx: the state of the call before, or ``(h_0, c_0)``; zeros without it.
            lengths: how many steps each row of a padded batch has, ``[B]``. Behind its end a row's outputs are zero, and its state is
                that after its last step.
        """
        if isinstance(hx, AdaptiveState):
            hx = tuple(part for part in hx if part is not None)
        return super().forward(input, hx, lengths)

    @torch.no_grad()
    def policies(self, input: Tensor, hx=None) -> list[dict[str, Tensor]]:
        """The factors of every step, without dropout: how the weights were adapted.

        Args:
            input: ``[T, B, I]``, or ``[B, T, I]`` with ``batch_first``.
            hx: as of ``forward``.

        Returns:
            For each layer, by name: ``input`` ``[T, B, I]``, ``hidden`` ``[T, B, H]``, ``input_product``, ``hidden_product`` and
            ``bias`` ``[T, B, 4H]``, those that its adaptation has; and ``latent`` ``[T, B, A]``.
        """
        if self.bidirectional or self.proj_size:
            raise ValueError("policies: of one direction and without proj_size only")
        if input.dim() != 3:
            raise ValueError(f"input: has shape {list(input.shape)}, must have three sizes")
        self._check_width(input)
        x = input.transpose(0, 1) if self.batch_first else input
        if isinstance(hx, AdaptiveState):
            hx = tuple(part for part in hx if part is not None)
        state = self._state_in(hx, x.shape[1], x, None, True)
        shape, _ = self._stacks[0]
        named = [dict(zip(names, layer)) for names, layer in zip(self._plain, self.all_weights)]
        if state is None:
            carried = [[x.new_zeros(x.shape[1], w) for w in self._state_widths(l)] for l in range(self.num_layers)]
        else:
            carried = [[part[l] if isinstance(part, Tensor) else part[l][0] for part in state] for l in range(self.num_layers)]
        seen: list[list[dict[str, Tensor]]] = [[] for _ in named]
        for step in x.unbind(0):
            _, after = readable.unroll(shape, step[None], named, carried)
            for layer, (w, parts) in enumerate(zip(named, after)):
                sizes = self._input_of(layer), self.hidden_sizes[layer]
                seen[layer].append({**readable.policy(shape, w, parts[2], sizes), "latent": parts[2]})
            carried = after
        turn = (lambda t: t.transpose(0, 1)) if self.batch_first else (lambda t: t)
        return [{name: turn(torch.stack([one[name] for one in steps])) for name in steps[0]} for steps in seen]

    def reset_parameters(self) -> None:
        """Draws all parameters anew: semi-orthogonal matrices, biases of zero, and one for the forget gates."""
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                # Each gate by itself would be another choice; this is the one of the crate.
                nn.init.orthogonal_(parameter)
            else:
                nn.init.zeros_(parameter)
                if name.startswith("bias") or (name.startswith("latent_bias_ih") and self.policy == "recurrent"):
                    quarter = parameter.shape[0] // 4
                    nn.init.ones_(parameter[quarter : 2 * quarter])

    def _shape(self, input_size: int, hidden: tuple[int, ...]) -> AdaptiveShape:
        return AdaptiveShape(
            input_size,
            hidden,
            self.latent_size,
            self.bias,
            self._between(),
            self.policy,
            self.summary if len(hidden) > 1 else "own",
            self.adaptation,
            self.layout,
            self.policy_start,
            self.skip,
        )

    def _layer_parameters(self, input_size: int, hidden: int) -> list[tuple[str, tuple[int, ...]]]:
        recurrent = self.policy == "recurrent"
        given = self.proj_size or hidden
        hybrid = self.summary == "hybrid" and self.num_layers > 1
        seen = input_size + given + (self.latent_size if hybrid else 0)
        gates = self.latent_size * (4 if recurrent else 1)
        shape = self._shape(input_size, (hidden,))
        parameters = [("latent_weight_ih", (gates, seen))]
        if recurrent:
            parameters += [("latent_weight_hh", (gates, self.latent_size))]
        parameters += [("latent_bias_ih", (gates,))]
        if recurrent:
            parameters += [("latent_bias_hh", (gates,))]
        parameters += [
            ("projection", (shape.policy_width(input_size, hidden, given), self.latent_size)),
            ("weight_ih", (4 * hidden, input_size)),
            ("weight_hh", (4 * hidden, given)),
        ]
        if self.bias:
            parameters += [("bias", (4 * hidden,))]
        if self.proj_size:
            parameters += [("weight_hr", (self.proj_size, hidden))]
        return parameters

    def _kernels_lack(self) -> str | None:
        lack = super()._kernels_lack()
        if lack:
            return lack
        if self._between() and self.summary == "hybrid":
            return "dropout between the layers of summary = 'hybrid'"
        if self._between() and self.dropout_latent:
            return "dropout together with dropout_latent"
        return None

    def _state_widths(self, layer: int) -> list[int]:
        latent = [self.latent_size] * (2 if self.policy == "recurrent" else 1)
        return [*super()._state_widths(layer), *latent]

    def _state_counts(self) -> tuple[int, ...]:
        return (2, self._kinds)

    def _state_type(self, parts: list):
        return AdaptiveState(*parts) if self.latent_state else tuple(parts[:2])

    def _masks(self, index: int, x: Tensor) -> dict[str, Tensor]:
        masks = super()._masks(index, x)
        if self.training and self.dropout_latent:
            shape, _ = self._stacks[index]
            for layer in range(len(shape.hidden)):
                ones = x.new_ones(x.shape[1], self.latent_size)
                masks[f"layers.{layer}.latent"] = nn.functional.dropout(ones, self.dropout_latent)
        return masks

    def _shown(self) -> dict:
        shown = {
            "latent_size": None,
            "policy": "recurrent",
            "summary": "hybrid",
            "adaptation": "io",
            "policy_start": "paper",
            "layout": "paper",
            "dropout_latent": 0.0,
            "latent_state": True,
        }
        return {"latent_size": None, **super()._shown(), **shown}
