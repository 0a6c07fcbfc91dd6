"""Comparing a module with the readable version of itself in ``float64``."""

import copy

import torch

# Of f32 kernels with sums of some hundred products, beside f64: relative and absolute.
RELATIVE, ABSOLUTE = 2e-4, 2e-5


def readable_twin(module):
    """The same module in f64, computed by ordinary PyTorch."""
    twin = copy.deepcopy(module).double()
    twin.execution = "readable"
    return twin


def flat(result):
    """All tensors of nested tuples and lists."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, torch.nn.utils.rnn.PackedSequence):
        return [result.data]
    return [tensor for part in result if part is not None for tensor in flat(part)]


def doubled(value):
    """A copy in f64 with gradients of its own."""
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point():
            return value
        return value.detach().double().requires_grad_(value.requires_grad)
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        data = value.data.detach().double().requires_grad_(value.data.requires_grad)
        return torch.nn.utils.rnn.PackedSequence(data, *value[1:])
    if value is None:
        return None
    return tuple(doubled(part) for part in value)


def assert_close(a, b, what):
    torch.testing.assert_close(a.double(), b.double(), rtol=RELATIVE, atol=ABSOLUTE, msg=lambda text: f"{what}: {text}")


def assert_same(module, input, hx=None, **options):
    """Outputs, states and all gradients of a module are those of its readable twin."""
    module.zero_grad()
    twin = readable_twin(module)
    arguments, others = (input, hx), (doubled(input), doubled(hx))
    # Both draw the same masks, if they draw any.
    torch.manual_seed(2)
    ours = flat(module(*arguments, **options))
    torch.manual_seed(2)
    theirs = flat(twin(*others, **options))
    assert len(ours) == len(theirs)
    weights = [torch.randn(tensor.shape) for tensor in ours]
    for index, (a, b) in enumerate(zip(ours, theirs)):
        assert a.shape == b.shape
        assert_close(a, b, f"result {index}")
    sum((tensor * weight).sum() for tensor, weight in zip(ours, weights)).backward()
    sum((tensor * weight.double()).sum() for tensor, weight in zip(theirs, weights)).backward()
    for (name, a), b in zip(module.named_parameters(), twin.parameters()):
        assert (a.grad is None) == (b.grad is None), name
        if a.grad is not None:
            assert a.grad.shape == a.shape
            assert_close(a.grad, b.grad, f"gradient of {name}")
    leaves = [t for t in flat(arguments[0:1]) + flat(arguments[1:]) if t.is_floating_point()]
    twins = [t for t in flat(others[0:1]) + flat(others[1:]) if t.is_floating_point()]
    for index, (a, b) in enumerate(zip(leaves, twins)):
        if a.requires_grad:
            # What has no influence has a gradient of zeros, or none.
            expected = torch.zeros_like(b) if b.grad is None else b.grad
            assert_close(a.grad, expected, f"gradient of input {index}")


def some(*shape, grad=True):
    """A tensor of draws."""
    return torch.randn(*shape).requires_grad_(grad)


def fix_masks(monkeypatch, kind):
    """Lets every module of a kind have the masks that the first one draws; gives them, by stack."""
    drawn = {}
    draw = kind._masks

    def masks(self, index, x):
        if self.training and index not in drawn:
            drawn[index] = draw(self, index, x)
        return {name: mask.to(x.dtype) for name, mask in drawn[index].items()} if self.training else {}

    monkeypatch.setattr(kind, "_masks", masks)
    return drawn
