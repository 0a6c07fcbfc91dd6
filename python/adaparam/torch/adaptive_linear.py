"""The adaptive linear layer."""

from __future__ import annotations

import json
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._memory import Owner, is_transformed
from ._recurrent import EXECUTIONS, TRANSFORMS, one_of, one_of_kind, positive
from ._rows import rows

__all__ = ["AdaptiveLinear"]

ADAPTATIONS = ("io", "input", "output", "sva")
POLICIES = ("linear", "glu", "latent")


class AdaptiveLinear(nn.Module):
    r"""``nn.Linear`` with weights that are adapted to every input: Flennerhag et al. (2018), section 2.

    .. code-block:: text

        y = D(2) W D(1) x + D(0) b         adaptation = "io"       eq. (3)
        y = W D(1) x + D(0) b              adaptation = "input"
        y = D(2) W x + D(0) b              adaptation = "output"
        y = W(2) D W(1) x + D(0) b         adaptation = "sva"      eq. (4)

    The diagonals ``D`` are a policy's. It looks at the input, or at a context of its own:

    .. code-block:: text

        pi(c) = U c + u                           policy = "linear"
        pi(c) = (U c + u) * sigmoid(G c + g)      policy = "glu"
        pi(c) = U relu(A c + a) + u               policy = "latent", for latent_size numbers in between

    Rows are one operation, forward and backward, on ``float32`` tensors of the CPU; elsewhere ordinary PyTorch computes.

    Args:
        in_features: ``I``, numbers of an input.
        out_features: ``O``, numbers of an output.
        bias: whether there is ``b``.
        adaptation: see above.
        policy: see above.
        rank: of ``"sva"``, the number of values that are adapted; at most, and by default, the smaller of ``I`` and ``O``.
        latent_size: of ``policy="latent"``.
        context_size: ``C``, numbers of a context of the policy's own; without it the policy looks at the input.
        execution: ``"auto"``, ``"fused"`` for an error where the kernels cannot compute, or ``"readable"`` for ordinary PyTorch.

    Shapes:
        - input: ``[..., I]``; context: ``[..., C]``; output: ``[..., O]``

    Parameters: ``weight`` ``[O, I]`` and ``bias`` as of ``nn.Linear``, or ``weight_in`` ``[R, I]`` and ``weight_out`` ``[O, R]`` of
    ``"sva"``; ``policy_weight`` and ``policy_bias`` (``U``, ``u``), ``gate_weight`` and ``gate_bias`` (``G``, ``g``),
    ``latent_weight`` and ``latent_bias`` (``A``, ``a``).

    Example:
        >>> layer = AdaptiveLinear.from_linear(nn.Linear(10, 4))
        >>> layer(torch.randn(3, 10)).shape
        torch.Size([3, 4])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device=None,
        dtype=None,
        *,
        adaptation: str = "io",
        policy: str = "linear",
        rank: int | None = None,
        latent_size: int | None = None,
        context_size: int | None = None,
        execution: str = "auto",
    ) -> None:
        super().__init__()
        self.in_features = positive("in_features", in_features)
        self.out_features = positive("out_features", out_features)
        self.adaptation = one_of("adaptation", adaptation, ADAPTATIONS)
        self.policy = one_of("policy", policy, POLICIES)
        self.execution = one_of("execution", execution, EXECUTIONS)
        most = min(in_features, out_features)
        if rank is not None and (adaptation != "sva" or not 1 <= positive("rank", rank) <= most):
            raise ValueError(f"rank = {rank}: is for adaptation = 'sva', and from 1 to {most}")
        self.rank = (rank or most) if adaptation == "sva" else None
        if (latent_size is None) == (policy == "latent"):
            raise ValueError(f"latent_size = {latent_size}: must be given with policy = 'latent', and only then")
        self.latent_size = None if latent_size is None else positive("latent_size", latent_size)
        self.context_size = None if context_size is None else positive("context_size", context_size)
        settings = {"device": device, "dtype": dtype}

        def parameter(name: str, *shape: int) -> None:
            self.register_parameter(name, nn.Parameter(torch.empty(*shape, **settings)))

        seen = context_size or in_features
        if policy == "latent":
            parameter("latent_weight", latent_size, seen)
            parameter("latent_bias", latent_size)
            seen = latent_size
        self._has_bias = bool(bias)
        width = sum(size for _, size in self._diagonals())
        parameter("policy_weight", width, seen)
        parameter("policy_bias", width)
        if policy == "glu":
            parameter("gate_weight", width, seen)
            parameter("gate_bias", width)
        if adaptation == "sva":
            parameter("weight_in", self.rank, in_features)
            parameter("weight_out", out_features, self.rank)
        else:
            parameter("weight", out_features, in_features)
        if bias:
            parameter("bias", out_features)
        else:
            self.register_parameter("bias", None)
        self._names = [name for name, one in self._parameters.items() if one is not None]
        self._text = json.dumps(self._description())
        self._owner = Owner()
        self.reset_parameters()

    @classmethod
    def from_linear(cls, linear: nn.Linear, **options) -> AdaptiveLinear:
        """A layer that begins as exactly the function of an ``nn.Linear``, and learns to adapt from there.

        Every diagonal begins at 1, whatever the input; with ``adaptation="sva"`` the one between begins at the singular values of the
        weight, of which ``rank`` keeps the largest. ``options`` are further arguments.
        """
        one_of_kind("from_linear", linear, nn.Linear)
        weight, bias = linear.weight, linear.bias
        own = cls(linear.in_features, linear.out_features, bias is not None, weight.device, weight.dtype, **options)
        with torch.no_grad():
            if own.adaptation == "sva":
                u, s, v = torch.linalg.svd(weight.double(), full_matrices=False)
                own.weight_in.copy_(v[: own.rank])
                own.weight_out.copy_(u[:, : own.rank])
            else:
                own.weight.copy_(weight)
            if bias is not None:
                own.bias.copy_(bias)
            own.policy_weight.zero_()
            start = torch.ones_like(own.policy_bias)
            at = 0
            for name, size in own._diagonals():
                if name == "values":
                    start[at : at + size] = s[: own.rank].to(start)
                at += size
            if own.policy == "glu":
                # An open gate lets half of a value through.
                own.gate_weight.zero_()
                own.gate_bias.zero_()
                start = 2 * start
            own.policy_bias.copy_(start)
        return own.train(linear.training)

    def reset_parameters(self) -> None:
        """Draws all parameters anew: semi-orthogonal weights, a bias of zero, a policy whose diagonals begin near 1."""
        for name in ("weight", "weight_in", "weight_out"):
            if name in self._names:
                nn.init.orthogonal_(getattr(self, name))
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        for name in ("latent", "policy", "gate"):
            if f"{name}_weight" in self._names:
                nn.init.kaiming_uniform_(getattr(self, f"{name}_weight"), math.sqrt(5))
                nn.init.zeros_(getattr(self, f"{name}_bias"))
        nn.init.constant_(self.policy_bias, 2.0 if self.policy == "glu" else 1.0)

    def forward(self, input: Tensor, context: Tensor | None = None) -> Tensor:
        """The outputs ``[..., O]`` of inputs ``[..., I]``, adapted to them or to ``context`` ``[..., C]``."""
        self._check(input, context)
        device, dtype = input.device.type, self.policy_bias.dtype
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            # Sums over a few hundred numbers of a policy multiply each other: they stay in the layer's own precision.
            with torch.autocast(device, enabled=False):
                return self._apply_rows(input.to(dtype), None if context is None else context.to(dtype))
        if input.dtype is not dtype:
            raise TypeError(f"input: has dtype {input.dtype}, must be {dtype}, as the parameters are")
        return self._apply_rows(input, context)

    def diagonals(self, context: Tensor) -> dict[str, Tensor]:
        """What the policy gives for its context, by name: ``bias`` ``D(0)``, ``input`` ``D(1)``, ``output`` ``D(2)``, or ``values``."""
        if self.policy == "latent":
            context = torch.relu(F.linear(context, self.latent_weight, self.latent_bias))
        pi = F.linear(context, self.policy_weight, self.policy_bias)
        if self.policy == "glu":
            pi = pi * torch.sigmoid(F.linear(context, self.gate_weight, self.gate_bias))
        names, sizes = zip(*self._diagonals())
        return dict(zip(names, pi.split(sizes, -1)))

    def extra_repr(self) -> str:
        parts = [f"in_features={self.in_features}", f"out_features={self.out_features}", f"bias={self.bias is not None}"]
        parts += [f"adaptation={self.adaptation!r}", f"policy={self.policy!r}"]
        for name in ("rank", "latent_size", "context_size"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)

    def _diagonals(self) -> list[tuple[str, int]]:
        """Name and size of each that is adapted, in their order."""
        sizes = [("bias", self.out_features)] if self._has_bias else []
        if self.adaptation in ("io", "input"):
            sizes.append(("input", self.in_features))
        if self.adaptation == "sva":
            sizes.append(("values", self.rank))
        if self.adaptation in ("io", "output"):
            sizes.append(("output", self.out_features))
        return sizes

    def _description(self) -> dict:
        adapted = {name for name, _ in self._diagonals()}
        if self.adaptation == "sva":
            widths, names = [self.in_features, self.rank, self.out_features], ["bias", "", "values", ""]
        else:
            widths, names = [self.in_features, self.out_features], ["bias", "input", "output"]
        stages = []
        if self.policy == "latent":
            stages.append({"width": self.latent_size, "activation": "relu", "gate": False})
        width = sum(size for _, size in self._diagonals())
        stages.append({"width": width, "activation": "identity", "gate": self.policy == "glu"})
        return {
            "widths": widths,
            "adapted": [name in adapted for name in names],
            "bias": self.bias is not None,
            "context": self.context_size,
            "stages": stages,
        }

    def _check(self, input: Tensor, context: Tensor | None) -> None:
        if input.dim() == 0 or input.shape[-1] != self.in_features:
            raise ValueError(
                f"input: has shape {list(input.shape)}, its last size must be in_features = {self.in_features}"
            )
        if (context is None) != (self.context_size is None):
            rule = "must be given, as context_size says" if context is None else "is for layers with a context_size"
            raise ValueError(f"context: {rule}")
        if context is not None and context.shape != (*input.shape[:-1], self.context_size):
            must = [*input.shape[:-1], self.context_size]
            raise ValueError(f"context: has shape {list(context.shape)}, must be {must}")
        if input.device != self.policy_bias.device:
            raise ValueError(f"input: is on {input.device}, must be on {self.policy_bias.device}, as the parameters are")

    def _apply_rows(self, input: Tensor, context: Tensor | None) -> Tensor:
        known = input.device.type == "cpu" and input.dtype is torch.float32
        if not known or self.execution == "readable" or is_transformed():
            if self.execution == "fused":
                lack = TRANSFORMS if known else f"{input.dtype} on {input.device}"
                raise RuntimeError(
                    f"execution = 'fused': the kernels do not know {lack}; "
                    "choose execution = 'auto' for the readable version there"
                )
            return self._readable(input, input if context is None else context)
        own = self._parameters
        parameters = [own[name] if name in own else getattr(self, name) for name in self._names]
        x = input.reshape(-1, self.in_features)
        c = None if context is None else context.reshape(-1, self.context_size)
        keep = torch.is_grad_enabled() and any(t.requires_grad for t in (x, *parameters, *([] if c is None else [c])))
        output = rows(x, c, parameters, self._text, self._owner.id, keep)
        return output.view(*input.shape[:-1], self.out_features)

    def _readable(self, x: Tensor, context: Tensor) -> Tensor:
        """As the paper writes it."""
        d = self.diagonals(context)
        if self.adaptation == "sva":
            y = F.linear(d["values"] * F.linear(x, self.weight_in), self.weight_out)
        else:
            y = F.linear(d["input"] * x if "input" in d else x, self.weight)
            y = d["output"] * y if "output" in d else y
        return y if self.bias is None else y + d["bias"] * self.bias
