"""Tensors as the kernels read them, and the memory that belongs to a module."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .. import _native


def numbers(tensor: Tensor) -> tuple[int, int]:
    """Where the numbers of a contiguous tensor are, and how many."""
    return tensor.data_ptr(), tensor.numel()


def all_numbers(tensors: Sequence[Tensor]) -> list[tuple[int, int]]:
    """``numbers`` of each."""
    return [(tensor.data_ptr(), tensor.numel()) for tensor in tensors]


def contiguous(of: str, tensor: Tensor) -> Tensor:
    """The tensor as the kernels can read it."""
    if tensor.dtype is not torch.float32:
        raise TypeError(f"adaparam: {of} has dtype {tensor.dtype}, must be torch.float32")
    return tensor.contiguous()


def all_contiguous(of: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    """``contiguous`` of each."""
    return [tensor.contiguous() if tensor.dtype is torch.float32 else contiguous(of, tensor) for tensor in tensors]


def versions(tensors: Sequence[Tensor]) -> list[int]:
    """How often each tensor was written to; -1 if nobody counts."""
    return [-1 if tensor.is_inference() else tensor._version for tensor in tensors]


_PLAIN = (Tensor, nn.Parameter)


def nobody_watches(x: Tensor, others: Sequence[Tensor]) -> bool:
    """Whether a call may go past PyTorch's dispatcher, which takes longer than a small window: these are tensors of the CPU and nothing
    else, and nothing is being traced, compiled or transformed."""
    return (
        not torch.compiler.is_compiling()
        and type(x) is Tensor
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and torch._C._get_tracing_state() is None
        and all([type(tensor) in _PLAIN and tensor.is_cpu for tensor in others])
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
