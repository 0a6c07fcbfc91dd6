"""``AdaptiveLinear`` on kernels is the readable version, and begins as the layer that it takes over."""

import copy
import gc
import itertools

import pytest
import torch
from torch import nn

from adaparam import _native
from adaparam.torch import AdaptiveLinear
from compare import assert_close, some

ADAPTATIONS = ["io", "input", "output", "sva"]
POLICIES = ["linear", "glu", "latent"]
KINDS = list(itertools.product(ADAPTATIONS, POLICIES))


def layer(adaptation, policy, **options):
    latent = {"latent_size": 4} if policy == "latent" else {}
    return AdaptiveLinear(6, 5, adaptation=adaptation, policy=policy, **latent, **options)


def twin(module):
    other = copy.deepcopy(module).double()
    other.execution = "readable"
    return other


@pytest.mark.parametrize("adaptation, policy", KINDS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("context", [None, 3])
def test_results_and_gradients_of_every_kind(adaptation, policy, bias, context):
    ours = layer(adaptation, policy, bias=bias, context_size=context, execution="fused")
    theirs = twin(ours)
    x = some(2, 7, 6)
    c = None if context is None else some(2, 7, context)
    y = x.detach().double().requires_grad_()
    d = None if c is None else c.detach().double().requires_grad_()
    a, b = ours(x, c), theirs(y, d)
    assert a.shape == (2, 7, 5)
    assert_close(a, b, "output")
    weight = torch.randn(a.shape)
    (a * weight).sum().backward()
    (b * weight).sum().backward()
    assert_close(x.grad, y.grad, "gradient of the input")
    if c is not None:
        assert_close(c.grad, d.grad, "gradient of the context")
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters()):
        assert_close(one.grad, other.grad, f"gradient of {name}")


@pytest.mark.parametrize("adaptation, policy", KINDS)
@pytest.mark.parametrize("bias", [True, False])
def test_it_begins_as_exactly_the_layer_that_it_takes_over(adaptation, policy, bias):
    linear = nn.Linear(6, 5, bias=bias)
    options = {"latent_size": 4} if policy == "latent" else {}
    ours = AdaptiveLinear.from_linear(linear, adaptation=adaptation, policy=policy, **options)
    x = 10 * torch.randn(20, 6)
    # Diagonals are exactly one. With sva there is a product more.
    torch.testing.assert_close(ours(x), linear(x), rtol=1e-5, atol=1e-4 if adaptation == "sva" else 1e-5)
    ours(x).square().sum().backward()
    assert ours.policy_weight.grad.abs().max() > 0


def test_a_lower_rank_keeps_the_largest_singular_values():
    linear = nn.Linear(6, 5)
    ours = AdaptiveLinear.from_linear(linear, adaptation="sva", rank=2)
    u, s, v = torch.linalg.svd(linear.weight.detach())
    near = u[:, :2] @ s[:2].diag() @ v[:2]
    x = torch.randn(20, 6)
    assert_close(ours(x), nn.functional.linear(x, near, linear.bias), "output")


def test_manners_of_a_module():
    ours = layer("io", "linear")
    x = some(3, 6)
    loss = ours(x).square().sum()
    loss.backward(retain_graph=True)
    once = x.grad.clone()
    loss.backward()
    assert torch.equal(x.grad, 2 * once)
    copied = copy.deepcopy(ours)
    assert torch.equal(copied(x), ours(x))
    copied.load_state_dict(ours.state_dict())
    (gradient,) = torch.autograd.grad(ours(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        gradient.sum().backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ours(x.detach().bfloat16()).dtype is torch.float32
    assert ours(torch.randn(6)).shape == (5,)
    assert ours(torch.randn(0, 6)).shape == (0, 5)
    ours.weight.requires_grad_(False)
    ours.zero_grad()
    ours(x).sum().backward()
    assert ours.weight.grad is None and ours.policy_weight.grad is not None
    del loss, gradient
    gc.collect()
    kept = _native.kept_passes()
    output = ours(x)
    assert _native.kept_passes() == kept + 1
    del output
    assert _native.kept_passes() == kept


@pytest.mark.parametrize("adaptation", ADAPTATIONS)
def test_gradcheck_of_the_readable_version(adaptation):
    module = layer(adaptation, "glu").double()
    x = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(module, (x,))


def test_mistakes_are_named():
    ours = layer("io", "linear")
    for call, error, text in [
        (lambda: ours(torch.randn(3, 5)), ValueError, r"input: has shape \[3, 5\].*in_features = 6"),
        (lambda: ours(torch.randn(3, 6).double()), TypeError, "input: has dtype torch.float64"),
        (lambda: ours(torch.randn(3, 6), torch.randn(3, 2)), ValueError, "context: is for layers"),
        (lambda: layer("io", "linear", context_size=2)(torch.randn(3, 6)), ValueError, "context: must be given"),
        (lambda: AdaptiveLinear(6, 5, adaptation="svd"), ValueError, "adaptation = 'svd'"),
        (lambda: AdaptiveLinear(6, 5, policy="latent"), ValueError, "latent_size = None"),
        (lambda: AdaptiveLinear(6, 5, rank=3), ValueError, "rank = 3: is for adaptation = 'sva'"),
        (lambda: AdaptiveLinear(6, 5, adaptation="sva", rank=6), ValueError, "from 1 to 5"),
    ]:
        with pytest.raises(error, match=text):
            call()
    assert "adaptation='io'" in repr(ours)
