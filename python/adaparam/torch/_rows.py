"""Rows of an adaptive feed-forward layer as one operation, and their gradients as another; as ``_window`` for recurrent stacks."""

from __future__ import annotations

from functools import lru_cache

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

_FORWARD = "adaparam::rows"
_BACKWARD = "adaparam::rows_backward"

torch.library.define(
    _FORWARD, "(Tensor x, Tensor? context, Tensor[] parameters, str layer, int owner, bool keep) -> (Tensor, Tensor)"
)
torch.library.define(
    _BACKWARD,
    "(Tensor x, Tensor? context, Tensor[] parameters, str layer, int owner, Tensor output, Tensor tape, Tensor d_output) -> Tensor[]",
)


@lru_cache(maxsize=None)
def native(text: str) -> _native.Layer:
    """What the kernels know about the layer that a text describes."""
    return _native.Layer(text)


def _forward(x, context, parameters, layer, owner, keep):
    """Outputs, and the tape if it is kept."""
    x = contiguous("input", x)
    context = None if context is None else contiguous("context", context)
    parameters = all_contiguous("a parameter", parameters)
    of = native(layer)
    output = x.new_empty((x.shape[0], of.d_output))
    capsule = _native.rows_forward(
        of,
        owner,
        torch.get_num_threads(),
        numbers(x),
        None if context is None else numbers(context),
        x.shape[0],
        all_numbers(parameters),
        [] if keep else versions(parameters),
        numbers(output),
        keep,
    )
    return output, (torch.from_dlpack(capsule) if keep else None)


@torch.library.impl(_FORWARD, "CPU")
def _forward_cpu(x, *operands):
    no_forward_mode()
    output, tape = _forward(x, *operands)
    return output, (x.new_empty(0, dtype=torch.uint8) if tape is None else tape)


@torch.library.register_fake(_FORWARD)
def _forward_fake(x, context, parameters, layer, owner, keep):
    return x.new_empty(x.shape[0], native(layer).d_output), x.new_empty(int(keep), dtype=torch.uint8)


def _backward_cpu(x, context, parameters, layer, owner, output, tape, d_output):
    not_batched([d_output])
    x = contiguous("input", x)
    context = None if context is None else contiguous("context", context)
    parameters = all_contiguous("a parameter", parameters)
    output, d_output = contiguous("output", output), contiguous("the gradient of the output", d_output)
    d_x = torch.empty_like(x)
    d_context = None if context is None else torch.empty_like(context)
    d_parameters = [torch.empty_like(parameter) for parameter in parameters]
    _native.rows_backward(
        native(layer),
        owner,
        torch.get_num_threads(),
        numbers(x),
        None if context is None else numbers(context),
        x.shape[0],
        all_numbers(parameters),
        numbers(output),
        tape.data_ptr(),
        numbers(d_output),
        numbers(d_x),
        None if d_context is None else numbers(d_context),
        all_numbers(d_parameters),
    )
    return [d_x, *([] if d_context is None else [d_context]), *d_parameters]


torch.library.impl(_BACKWARD, "CPU", _backward_cpu)


@torch.library.register_fake(_BACKWARD)
def _backward_fake(x, context, parameters, layer, owner, output, tape, d_output):
    like = [x, *([] if context is None else [context]), *parameters]
    return [tensor.new_empty(tensor.shape) for tensor in like]


def _setup(ctx, inputs, output):
    x, context, parameters, layer, owner, _keep = inputs
    rows, tape = output
    ctx.save_for_backward(x, context, rows, tape, *parameters)
    ctx.settings = layer, owner
    ctx.mark_non_differentiable(tape)


def _gradients(ctx, d_output, needs, backward):
    """Of the input, of the context, and of the parameters; none where none is needed."""
    x, context, rows, tape, *parameters = ctx.saved_tensors
    found = backward(x, context, parameters, *ctx.settings, rows, tape, d_output)
    if context is None:
        found.insert(1, None)
    d_x, d_context, *d_parameters = (gradient if need else None for gradient, need in zip(found, needs))
    return d_x, d_context, d_parameters


def _backward(ctx, d_output, _d_tape):
    need_x, need_context, needs, *_ = ctx.needs_input_grad
    operation = torch.ops.adaparam.rows_backward
    return *_gradients(ctx, d_output, (need_x, need_context, *needs), operation), None, None, None


torch.library.register_autograd(_FORWARD, _backward, setup_context=_setup)
torch.library.register_autograd(_BACKWARD, no_second_derivative)
one_by_one("rows_backward")


class _Rows(torch.autograd.Function):
    """As ``_window._Window``."""

    @staticmethod
    def forward(ctx, settings, x, context, *parameters):
        output, tape = _forward(x, context, parameters, *settings, True)
        ctx.save_for_backward(x, context, output, tape, *parameters)
        ctx.settings = settings
        return output

    @staticmethod
    def backward(ctx, d_output):
        # With a graph of this pass the operation is needed, which refuses second derivatives; and with a batch of passes.
        needs_operation = torch.is_grad_enabled() or is_transformed()
        backward = torch.ops.adaparam.rows_backward if needs_operation else _backward_cpu
        d_x, d_context, d_parameters = _gradients(ctx, d_output, ctx.needs_input_grad[1:], backward)
        return None, d_x, d_context, *d_parameters


def rows(x: Tensor, context: Tensor | None, parameters: list[Tensor], layer: str, owner: int, keep: bool) -> Tensor:
    """From ``[N, I]`` to ``[N, O]``, with gradients if ``keep``."""
    if nobody_watches(x, parameters if context is None else [*parameters, context]):
        if not keep:
            return _forward(x, context, parameters, layer, owner, False)[0]
        return _Rows.apply((layer, owner), x, context, *parameters)
    return torch.ops.adaparam.rows(x, context, parameters, layer, owner, keep)[0]
