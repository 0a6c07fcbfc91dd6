"""Rows of an adaptive feed-forward layer as one operation, and their gradients as another; as ``_window`` for recurrent stacks."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from .. import _native
from ._memory import no_second_derivative, numbers, readable

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


@torch.library.impl(_FORWARD, "CPU")
def _forward_cpu(x, context, parameters, layer, owner, keep):
    x = readable("input", x)
    context = None if context is None else readable("context", context)
    parameters = [readable("a parameter", parameter) for parameter in parameters]
    of = native(layer)
    output = x.new_empty(x.shape[0], of.d_output)
    capsule = _native.rows_forward(
        of,
        owner,
        torch.get_num_threads(),
        numbers(x),
        None if context is None else numbers(context),
        x.shape[0],
        [numbers(parameter) for parameter in parameters],
        numbers(output),
        keep,
    )
    return output, (torch.from_dlpack(capsule) if keep else x.new_empty(0, dtype=torch.uint8))


@torch.library.register_fake(_FORWARD)
def _forward_fake(x, context, parameters, layer, owner, keep):
    return x.new_empty(x.shape[0], native(layer).d_output), x.new_empty(int(keep), dtype=torch.uint8)


@torch.library.impl(_BACKWARD, "CPU")
def _backward_cpu(x, context, parameters, layer, owner, output, tape, d_output):
    x = readable("input", x)
    context = None if context is None else readable("context", context)
    parameters = [readable("a parameter", parameter) for parameter in parameters]
    output, d_output = readable("output", output), readable("the gradient of the output", d_output)
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
        [numbers(parameter) for parameter in parameters],
        numbers(output),
        tape.data_ptr(),
        numbers(d_output),
        numbers(d_x),
        None if d_context is None else numbers(d_context),
        [numbers(gradient) for gradient in d_parameters],
    )
    return [d_x, *([] if d_context is None else [d_context]), *d_parameters]


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


def _backward(ctx, d_output, _d_tape):
    x, context, rows, tape, *parameters = ctx.saved_tensors
    layer, owner = ctx.settings
    d_x, *rest = torch.ops.adaparam.rows_backward(x, context, parameters, layer, owner, rows, tape, d_output)
    d_context = None if context is None else rest.pop(0)
    needs = ctx.needs_input_grad
    d_parameters = [gradient if need else None for gradient, need in zip(rest, needs[2])]
    return (d_x if needs[0] else None), d_context, d_parameters, None, None, None


torch.library.register_autograd(_FORWARD, _backward, setup_context=_setup)
torch.library.register_autograd(_BACKWARD, no_second_derivative)


def rows(x: Tensor, context: Tensor | None, parameters: list[Tensor], layer: str, owner: int, keep: bool) -> Tensor:
    """From ``[N, I]`` to ``[N, O]``."""
    return torch.ops.adaparam.rows(x, context, parameters, layer, owner, keep)[0]
