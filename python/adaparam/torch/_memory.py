"""Tensors as the kernels read them, and the memory that belongs to a module."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

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


def is_transformed() -> bool:
    """Whether a function is being transformed, by ``torch.func`` or by derivatives in forward mode. The kernels know gradients alone:
    a tangent would be lost in them, and nobody told."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


# As `torch.compiler.assume_constant_result` does, which imports the whole compiler: what is asked while a graph is traced holds for the
# graph, as the compiler guards both.
is_transformed._dynamo_marked_constant = True


def nobody_watches(x: Tensor, others: Sequence[Tensor]) -> bool:
    """Whether a call may go past PyTorch's dispatcher, which takes longer than a small window: these are tensors of the CPU and nothing
    else, and nothing is being traced or compiled."""
    return (
        not torch.compiler.is_compiling()
        and type(x) is Tensor
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._get_tracing_state() is None
        and all([type(tensor) in _PLAIN and tensor.is_cpu for tensor in others])
    )


def no_second_derivative(*_):
    """In place of a gradient of gradients."""
    raise RuntimeError(
        "adaparam: the kernels have no second derivative (create_graph=True, or a gradient of a gradient); "
        "construct the module with execution='readable' for that"
    )


def no_forward_mode() -> None:
    """An error instead of a tangent of zeros. Modules do not come here, but programs that were exported do."""
    if forward_ad._current_level >= 0:
        raise RuntimeError(
            "adaparam: the kernels have no derivatives in forward mode (torch.func.jvp, jacfwd, forward_ad); "
            "call the module itself for that, not an exported program"
        )


def not_batched(gradients: Sequence[Tensor]) -> None:
    """An error for what ``torch.autograd`` makes of many gradients by itself, which no rule of an operation is told of."""
    if any([torch._C._functorch.is_legacy_batchedtensor(gradient) for gradient in gradients]):
        raise RuntimeError(
            "adaparam: the kernels know no batches of gradients from is_grads_batched=True or jacobian(vectorize=True); "
            "take torch.func.jacrev or torch.vmap, or construct the module with execution='readable'"
        )


def one_by_one(name: str) -> None:
    """Lets ``torch.vmap`` go through an operation that gives a list of tensors."""
    operation = getattr(torch.ops.adaparam, name)

    def one(operand, dim, index: int):
        if isinstance(dim, (list, tuple)):
            return [one(part, of, index) for part, of in zip(operand, dim)]
        return operand if dim is None else operand.select(dim, index)

    def batched(info, in_dims, *operands):
        indices = range(info.batch_size)
        every = [operation(*(one(operand, dim, index) for operand, dim in zip(operands, in_dims))) for index in indices]
        return [torch.stack(parts) for parts in zip(*every)], [0] * len(every[0])

    torch.library.register_vmap(f"adaparam::{name}", batched)


class Owner:
    """Names the module that memory of calls belongs to. A copy of the module has its own."""

    def __init__(self) -> None:
        self._native = _native.Owner()
        self.id = self._native.id

    def __deepcopy__(self, _memo: dict) -> Owner:
        return Owner()

    def __reduce__(self):
        return Owner, ()
