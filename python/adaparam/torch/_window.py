"""A whole window of a recurrent stack as one operation, and its gradients as another.

``adaparam::window`` gives the outputs, the final state and a tape; ``adaparam::window_backward`` all gradients. Both depend on nothing
but their arguments: the tape is a tensor of one byte that keeps the memory of the window alive. Where it has been copied, freed or
used, the backward pass computes the window again. So graphs may be traced, cut, saved and run twice.

Plain tensors that nobody watches do without the operations: see ``window``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _native
from ._memory import (
    all_contiguous,
    all_numbers,
    contiguous,
    is_transformed,
    no_forward_mode,
    no_second_derivative,
    nobody_watches,
    not_batched,
    numbers,
    one_by_one,
    versions,
)
from ._shape import native, parameter_shapes, state_shapes

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


def _forward(x, weights, state, masks, sites, lengths, stack, precision, owner, keep):
    """Outputs, the final state by kinds, and the tape if it is kept."""
    x = contiguous("input", x)
    weights = all_contiguous("a weight", weights)
    state = all_contiguous("the state", state)
    masks = all_contiguous("a mask", masks)
    steps, batch, _ = x.shape
    of = native(stack)
    output = x.new_empty((steps, batch, of.d_output))
    finals = [x.new_empty(shape) for shape in state_shapes(stack, batch)]
    capsule = _native.forward(
        of,
        owner,
        torch.get_num_threads(),
        precision,
        numbers(x),
        steps,
        batch,
        all_numbers(weights),
        [] if keep else versions(weights),
        all_numbers(state),
        _site_masks(masks, sites, stack),
        None if lengths is None else lengths.tolist(),
        numbers(output),
        all_numbers(finals),
        keep,
    )
    return output, finals, (torch.from_dlpack(capsule) if keep else None)


@torch.library.impl(_FORWARD, "CPU")
def _forward_cpu(x, *operands):
    no_forward_mode()
    output, finals, tape = _forward(x, *operands)
    return [output, *finals, x.new_empty(0, dtype=torch.uint8) if tape is None else tape]


@torch.library.register_fake(_FORWARD)
def _forward_fake(x, weights, state, masks, sites, lengths, stack, precision, owner, keep):
    steps, batch, _ = x.shape
    output = x.new_empty(steps, batch, native(stack).d_output)
    finals = [x.new_empty(shape) for shape in state_shapes(stack, batch)]
    return [output, *finals, x.new_empty(int(keep), dtype=torch.uint8)]


def _backward(x, weights, state, masks, sites, lengths, stack, precision, owner, tape, d_output, d_finals, weights_too):
    """Gradients of the input, of the initial state by kinds, and of the weights. ``d_finals`` may be empty, for zeros."""
    x = contiguous("input", x)
    weights = all_contiguous("a weight", weights)
    state = all_contiguous("the state", state)
    masks = all_contiguous("a mask", masks)
    not_batched([d_output, *d_finals])
    d_output = contiguous("the gradient of the output", d_output)
    d_finals = all_contiguous("the gradient of the final state", d_finals)
    steps, batch, _ = x.shape
    d_x = torch.empty_like(x)
    d_state = [x.new_empty(shape) for shape in state_shapes(stack, batch)]
    d_weights = [torch.empty_like(weight) for weight in weights] if weights_too else []
    _native.backward(
        native(stack),
        owner,
        torch.get_num_threads(),
        precision,
        numbers(x),
        steps,
        batch,
        all_numbers(weights),
        all_numbers(state),
        _site_masks(masks, sites, stack),
        None if lengths is None else lengths.tolist(),
        tape.data_ptr(),
        numbers(d_output),
        all_numbers(d_finals),
        numbers(d_x),
        all_numbers(d_state),
        all_numbers(d_weights),
    )
    return d_x, d_state, d_weights


@torch.library.impl(_BACKWARD, "CPU")
def _backward_cpu(*operands):
    d_x, d_state, d_weights = _backward(*operands)
    return [d_x, *d_state, *d_weights]


@torch.library.register_fake(_BACKWARD)
def _backward_fake(
    x, weights, state, masks, sites, lengths, stack, precision, owner, tape, d_output, d_finals, weights_too
):
    d_state = [x.new_empty(shape) for shape in state_shapes(stack, x.shape[1])]
    shapes = parameter_shapes(stack) if weights_too else ()
    return [x.new_empty(x.shape), *d_state, *(x.new_empty(shape) for shape in shapes)]


def _save(ctx, x, weights, state, masks, lengths, tape, settings) -> None:
    """Lets autograd keep what a backward pass is computed from."""
    ctx.save_for_backward(x, *weights, *state, *masks, tape, *([] if lengths is None else [lengths]))
    ctx.counts = len(weights), len(state), lengths is not None
    ctx.settings = settings


def _saved(ctx) -> list:
    """What ``_save`` kept, as the first operands of a backward pass."""
    n_weights, n_state, has_lengths = ctx.counts
    x, *rest = ctx.saved_tensors
    lengths = rest.pop() if has_lengths else None
    tape = rest.pop()
    weights, state = rest[:n_weights], rest[n_weights : n_weights + n_state]
    masks = rest[n_weights + n_state :]
    sites, *others = ctx.settings
    return [x, weights, state, masks, sites, lengths, *others, tape]


def _setup(ctx, inputs, output):
    x, weights, state, masks, sites, lengths, stack, precision, owner, _keep = inputs
    _save(ctx, x, weights, state, masks, lengths, output[-1], (list(sites), stack, precision, owner))
    ctx.mark_non_differentiable(output[-1])


def _gradients(ctx, gradients):
    operands = _saved(ctx)
    _, weights, state, masks, sites, *_ = operands
    needs = ctx.needs_input_grad
    weights_too = any(needs[1])
    d_output, *d_finals, _ = gradients
    d_x, *others = torch.ops.adaparam.window_backward(*operands, d_output, d_finals, weights_too)
    d_weights = others[len(d_finals) :] if weights_too else [None] * len(weights)
    d_weights = [gradient if need else None for gradient, need in zip(d_weights, needs[1])]
    d_state = others[: len(state)]
    # An empty list of numbers counts as one of tensors.
    no_sites = None if sites else []
    return (d_x if needs[0] else None), d_weights, d_state, [None] * len(masks), no_sites, None, None, None, None, None


torch.library.register_autograd(_FORWARD, _gradients, setup_context=_setup)
torch.library.register_autograd(_BACKWARD, no_second_derivative)
one_by_one("window_backward")


class _Window(torch.autograd.Function):
    """What ``register_autograd`` makes of the operations, for plain tensors, without what it costs to call one."""

    @staticmethod
    def forward(ctx, others, n_weights, x, *tensors):
        weights, state = tensors[:n_weights], tensors[n_weights:]
        masks, sites, lengths, *settings = others
        output, finals, tape = _forward(x, weights, state, masks, sites, lengths, *settings, True)
        _save(ctx, x, weights, state, masks, lengths, tape, (sites, *settings))
        ctx.set_materialize_grads(False)
        return output, *finals

    @staticmethod
    def backward(ctx, d_output, *d_finals):
        operands = _saved(ctx)
        x, weights, state, _, _, _, stack, *_ = operands
        batch = x.shape[1]
        if d_output is None:
            d_output = x.new_zeros(x.shape[0], batch, native(stack).d_output)
        if all([part is None for part in d_finals]):
            d_finals = []
        else:
            shapes = state_shapes(stack, batch)
            d_finals = [x.new_zeros(shape) if part is None else part for part, shape in zip(d_finals, shapes)]
        _, _, need_x, *needs = ctx.needs_input_grad
        weights_too = any(needs[: len(weights)])
        if torch.is_grad_enabled() or is_transformed():
            # Somebody asks for a graph of this pass, and the operation refuses second derivatives; or for a batch of passes.
            d_finals = d_finals or [x.new_zeros(shape) for shape in state_shapes(stack, batch)]
            d_x, *others = torch.ops.adaparam.window_backward(*operands, d_output, d_finals, weights_too)
            d_state, d_weights = others[: len(d_finals)], others[len(d_finals) :]
        else:
            d_x, d_state, d_weights = _backward(*operands, d_output, d_finals, weights_too)
        found = [*(d_weights or [None] * len(weights)), *d_state[: len(state)]]
        found = [gradient if need else None for gradient, need in zip(found, needs)]
        return None, None, (d_x if need_x else None), *found


def window(x, weights, state, masks, sites, lengths, stack, precision, owner, keep) -> tuple[Tensor, list[Tensor]]:
    """Outputs ``[T, B, O]``, and the parts of the final state as ``state_shapes`` says; with gradients if ``keep``."""
    others = masks, sites, lengths, stack, precision, owner
    if nobody_watches(x, [*weights, *state]):
        if not keep:
            return _forward(x, weights, state, *others, False)[:2]
        output, *finals = _Window.apply(others, len(weights), x, *weights, *state)
    else:
        output, *finals, _ = torch.ops.adaparam.window(x, weights, state, *others, keep)
    return output, finals
