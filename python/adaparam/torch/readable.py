"""The recurrent stacks in ordinary PyTorch, a step at a time, as the paper writes them.

This is what runs on other devices and in other precisions than the kernels know, and what the kernels are tested against. Shapes:
``T`` time, ``B`` batch, ``I`` input, ``H`` hidden, ``A`` latent. Gates are in the order ``i, f, z, o``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ._shape import AdaptiveShape, LstmShape, Shape

__all__ = ["lstm_cell", "policy", "adaptive_step", "unroll"]

Weights = Mapping[str, Tensor]


def lstm_cell(u: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden and cell state from pre-activations ``u`` ``[B, 4H]``. Paper eq. (5)."""
    i, f, z, o = u.chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
    return torch.sigmoid(o) * torch.tanh(c), c


def lstm_step(w: Weights, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """A step of a plain layer."""
    u = F.linear(x, w["weight_ih"], w.get("bias_ih")) + F.linear(h, w["weight_hh"], w.get("bias_hh"))
    h, c = lstm_cell(u, c)
    return (F.linear(h, w["weight_hr"]) if "weight_hr" in w else h), c


def policy(shape: AdaptiveShape, w: Weights, z: Tensor, sizes: tuple[int, ...]) -> dict[str, Tensor]:
    """The parts of a layer's policy at a latent variable ``z`` ``[B, A]``. Paper eq. (8)."""
    pi = torch.tanh(F.linear(z, w["projection"]))
    if shape.start == "identity":
        pi = 1 + pi
    return {name: pi[..., start : start + size] for name, start, size in shape.parts(*sizes)}


def adaptive_step(
    shape: AdaptiveShape,
    w: Weights,
    x: Tensor,
    other: Tensor | None,
    state: Sequence[Tensor],
    latent_mask: Tensor | None,
) -> list[Tensor]:
    """A step of an adaptive layer, which sees the latent variable ``other`` of another one. Paper eq. (4) to (9)."""
    h, c, z = state[:3]
    v = torch.cat([x, h] if other is None else [x, h, other], -1)
    if shape.policy == "recurrent":
        past = F.linear(z, w["latent_weight_hh"], w["latent_bias_hh"])
        z, z_cell = lstm_cell(F.linear(v, w["latent_weight_ih"], w["latent_bias_ih"]) + past, state[3])
        latent = [z, z_cell]
    else:
        z = torch.relu(F.linear(v, w["latent_weight_ih"], w["latent_bias_ih"]))
        latent = [z]
    if latent_mask is not None:
        latent[0] = z = z * latent_mask
    pi = policy(shape, w, z, (x.shape[-1], c.shape[-1], h.shape[-1]))
    ones = x.new_ones(())
    u = pi.get("input_product", ones) * F.linear(pi.get("input", ones) * x, w["weight_ih"])
    u = u + pi.get("hidden_product", ones) * F.linear(pi.get("hidden", ones) * h, w["weight_hh"])
    if shape.bias:
        u = u + pi["bias"] * w["bias"]
    h, c = lstm_cell(u, c)
    return [F.linear(h, w["weight_hr"]) if "weight_hr" in w else h, c, *latent]


def _step(shape, w, x, other, state, latent_mask):
    if isinstance(shape, LstmShape):
        return list(lstm_step(w, x, *state))
    return adaptive_step(shape, w, x, other, state, latent_mask)


def unroll(
    shape: Shape,
    x: Tensor,
    weights: Sequence[Weights],
    state: Sequence[Sequence[Tensor]],
    masks: Mapping[str, Tensor] | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, list[list[Tensor]]]:
    """Runs a window.

    Args:
        x: ``[T, B, I]``.
        weights: of each layer, by name.
        state: of each layer, ``[B, width]`` of each kind: hidden, cell, and of an adaptive layer latent hidden and latent cell.
        masks: by the name of a site: ``layers.0.hidden``, ``layers.0.latent``, ``layers.1.inter_layer``.
        lengths: how many steps each row has, ``[B]``.

    Returns:
        What the highest layer gives before dropout ``[T, B, H]``, its hidden states, and its input besides if it skips; and the state
        after each row's last step.
    """
    masks = masks or {}
    hybrid = isinstance(shape, AdaptiveShape) and shape.is_hybrid
    state = [list(parts) for parts in state]
    outputs = []
    alive = None
    if lengths is not None:
        alive = torch.arange(x.shape[0], device=x.device)[:, None] < lengths.to(x.device)  # [T, B]
        # Not a product: what is behind the end of a row may be no number.
        x = torch.where(alive[..., None], x, x.new_zeros(()))
    for t, given in enumerate(x.unbind(0)):
        other = state[-1][2] if hybrid else None
        for l, w in enumerate(weights):
            between = masks.get(f"layers.{l}.inter_layer")
            if between is not None:
                given = given * (between[t] if between.dim() == 3 else between)
            new = _step(shape, w, given, other, state[l], masks.get(f"layers.{l}.latent"))
            output, below = new[0], given
            hidden_mask = masks.get(f"layers.{l}.hidden")
            if hidden_mask is not None:
                new[0] = output * hidden_mask
            given = new[0]
            if shape.skip and below.shape[-1] == output.shape[-1]:
                output, given = output + below, given + below
            if alive is not None:
                new = [torch.where(alive[t, :, None], a, b) for a, b in zip(new, state[l])]
            state[l] = new
            if hybrid:
                other = new[2]
        outputs.append(output if alive is None else output * alive[t, :, None])
    return torch.stack(outputs), state
