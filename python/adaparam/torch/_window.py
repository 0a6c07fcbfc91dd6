"""A whole window of a recurrent stack as one operation, and its gradients as another.

``adaparam::window`` gives the outputs, the final state and a tape; ``adaparam::window_backward`` all gradients. Both depend on nothing
but their arguments: the tape is a tensor of one byte that keeps the memory of the window alive. Where it has been copied, freed or
used, the backward pass computes the window again. So graphs may be traced, cut, saved and run twice.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _native
from ._memory import nobody_watches, no_second_derivative, numbers, readable
from ._shape import native, parameter_shapes, state_widths

_FORWARD = "adaparam::window"
_BACKWARD = "adaparam::window_backward"

_OPERANDS = (
    "Tensor x, Tensor[] weights, Tensor[] state, Tensor[] masks, int[] sites, Tensor? lengths, "
    "str stack, str precision, int owner"
)
torch.library.define(_FORWARD, f"({_OPERANDS}, bool keep) -> Tensor[]")
torch.library.define(
    _BACKWARD,
    f"({_OPERANDS}, Tensor tape, Tensor d_output, Tensor[] d_finals, bool weights_too) -> Tensor[]",
)


def _site_masks(masks: list[Tensor], sites: list[int], stack: str) -> list[tuple[int, int] | None]:
    if not masks:
        return []
    every: list[tuple[int, int] | None] = [None] * len(native(stack).sites)
    for site, mask in zip(sites, masks):
        every[site] = numbers(mask)
    return every


def _version(tensor: Tensor) -> int:
    """How often a tensor was written to; -1 if nobody counts."""
    return -1 if tensor.is_inference() else tensor._version


def _forward_cpu(x, weights, state, masks, sites, lengths, stack, precision, owner, keep):
    x = readable("input", x)
    weights = [readable("a weight", weight) for weight in weights]
    state = [readable("the state", part) for part in state]
    masks = [readable("a mask", mask) for mask in masks]
    steps, batch, _ = x.shape
    of = native(stack)
    output = x.new_empty(steps, batch, of.d_output)
    finals = [x.new_empty(batch * width) for width in state_widths(stack)]
    capsule = _native.forward(
        of,
        owner,
        torch.get_num_threads(),
        precision,
        numbers(x),
        steps,
        batch,
        [numbers(weight) for weight in weights],
        [] if keep else [_version(weight) for weight in weights],
        [numbers(part) for part in state],
        _site_masks(masks, sites, stack),
        None if lengths is None else lengths.tolist(),
        numbers(output),
        [numbers(final) for final in finals],
        keep,
    )
    tape = torch.from_dlpack(capsule) if keep else x.new_empty(0, dtype=torch.uint8)
    return [output, *finals, tape]


torch.library.impl(_FORWARD, "CPU", _forward_cpu)


@torch.library.register_fake(_FORWARD)
def _forward_fake(x, weights, state, masks, sites, lengths, stack, precision, owner, keep):
    steps, batch, _ = x.shape
    output = x.new_empty(steps, batch, native(stack).d_output)
    finals = [x.new_empty(batch * width) for width in state_widths(stack)]
    return [output, *finals, x.new_empty(int(keep), dtype=torch.uint8)]


def _backward_cpu(
    x, weights, state, masks, sites, lengths, stack, precision, owner, tape, d_output, d_finals, weights_too
):
    x = readable("input", x)
    weights = [readable("a weight", weight) for weight in weights]
    state = [readable("the state", part) for part in state]
    masks = [readable("a mask", mask) for mask in masks]
    d_output = readable("the gradient of the output", d_output)
    d_finals = [readable("the gradient of the final state", part) for part in d_finals]
    steps, batch, _ = x.shape
    d_x = torch.empty_like(x)
    d_state = [x.new_empty(batch * width) for width in state_widths(stack)]
    d_weights = [torch.empty_like(weight) for weight in weights] if weights_too else []
    _native.backward(
        native(stack),
        owner,
        torch.get_num_threads(),
        precision,
        numbers(x),
        steps,
        batch,
        [numbers(weight) for weight in weights],
        [numbers(part) for part in state],
        _site_masks(masks, sites, stack),
        None if lengths is None else lengths.tolist(),
        tape.data_ptr(),
        numbers(d_output),
        [numbers(part) for part in d_finals],
        numbers(d_x),
        [numbers(part) for part in d_state],
        [numbers(gradient) for gradient in d_weights],
    )
    return [d_x, *d_state, *d_weights]


torch.library.impl(_BACKWARD, "CPU", _backward_cpu)


@torch.library.register_fake(_BACKWARD)
def _backward_fake(
    x, weights, state, masks, sites, lengths, stack, precision, owner, tape, d_output, d_finals, weights_too
):
    d_state = [x.new_empty(x.shape[1] * width) for width in state_widths(stack)]
    shapes = parameter_shapes(stack) if weights_too else ()
    return [x.new_empty(x.shape), *d_state, *(x.new_empty(shape) for shape in shapes)]


def _setup_forward(ctx, inputs, output):
    x, weights, state, masks, sites, lengths, stack, precision, owner, keep = inputs
    ctx.save_for_backward(x, *weights, *state, *masks, output[-1], *([] if lengths is None else [lengths]))
    ctx.counts = len(weights), len(state), len(masks)
    ctx.settings = list(sites), stack, precision, owner
    ctx.has_lengths = lengths is not None
    ctx.mark_non_differentiable(output[-1])


def _backward(ctx, gradients):
    n_weights, n_state, n_masks = ctx.counts
    sites, stack, precision, owner = ctx.settings
    x, *rest = ctx.saved_tensors
    lengths = rest.pop() if ctx.has_lengths else None
    tape = rest.pop()
    weights, state = rest[:n_weights], rest[n_weights : n_weights + n_state]
    masks = rest[n_weights + n_state :]
    needs = ctx.needs_input_grad
    weights_too = any(needs[1])
    d_output, *d_finals, _ = gradients
    d_x, *others = torch.ops.adaparam.window_backward(
        x, weights, state, masks, sites, lengths, stack, precision, owner, tape, d_output, d_finals, weights_too
    )
    n_finals = len(d_finals)
    d_state = others[:n_state] if n_state else []
    d_weights = others[n_finals:] if weights_too else [None] * n_weights
    d_weights = [gradient if need else None for gradient, need in zip(d_weights, needs[1])]
    shaped = [gradient.view(part.shape) for gradient, part in zip(d_state, state)]
    # An empty list of numbers counts as one of tensors.
    no_sites = None if sites else []
    return (d_x if needs[0] else None), d_weights, shaped, [None] * n_masks, no_sites, None, None, None, None, None


torch.library.register_autograd(_FORWARD, _backward, setup_context=_setup_forward)


torch.library.register_autograd(_BACKWARD, no_second_derivative)


def window(x, weights, state, masks, sites, lengths, stack, precision, owner, keep) -> list[Tensor]:
    """Outputs ``[T, B, O]``, the parts of the final state, each ``[B * width]``, and the tape."""
    if not keep and nobody_watches(x):
        return _forward_cpu(x, weights, state, masks, sites, lengths, stack, precision, owner, keep)
    return torch.ops.adaparam.window(x, weights, state, masks, sites, lengths, stack, precision, owner, keep)
