"""Tensors as the kernels read them, and the memory that belongs to a module."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _native


def numbers(tensor: Tensor) -> tuple[int, int]:
    """Where the numbers of a contiguous tensor are, and how many."""
    return tensor.data_ptr(), tensor.numel()


def readable(of: str, tensor: Tensor) -> Tensor:
    """The tensor as the kernels can read it."""
    if tensor.dtype is not torch.float32:
        raise TypeError(f"adaparam: {of} has dtype {tensor.dtype}, must be torch.float32")
    return tensor.contiguous()


def nobody_watches(x: Tensor) -> bool:
    """Whether a call without gradients may go past PyTorch's dispatcher, which takes longer than a small window: nothing is being
    traced, compiled or transformed."""
    return (
        not torch.compiler.is_compiling()
        and type(x) is Tensor
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch._C._get_tracing_state() is None
    )


def no_second_derivative(*_):
    """In place of a gradient of gradients."""
    raise RuntimeError(
        "adaparam: the kernels have no second derivative (create_graph=True, or a gradient of a gradient); "
        "construct the module with execution='readable' for that"
    )


class Owner:
    """Names the module that memory of calls belongs to. A copy of the module has its own."""

    def __init__(self) -> None:
        self._native = _native.Owner()
        self.id = self._native.id

    def __deepcopy__(self, _memo: dict) -> Owner:
        return Owner()

    def __reduce__(self):
        return Owner, ()
