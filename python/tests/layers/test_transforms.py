"""Transformations of ``torch.func``, and derivatives in forward mode: all are those of the readable version."""

import copy

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap

from adaparam.torch import LSTM, AdaptiveLinear, AdaptiveLSTM
from compare import assert_close, flat, some

MODULES = {
    "LSTM": lambda **o: LSTM(3, 4, num_layers=2, **o),
    "LSTM, two directions": lambda **o: LSTM(3, 4, bidirectional=True, **o),
    "AdaptiveLSTM": lambda **o: AdaptiveLSTM(3, 4, 2, num_layers=2, policy_start="identity", **o),
    "AdaptiveLSTM, static": lambda **o: AdaptiveLSTM(3, 4, 2, policy="static", policy_start="identity", **o),
    "AdaptiveLinear": lambda **o: AdaptiveLinear(3, 4, **o),
}
every = pytest.mark.parametrize("name", MODULES)

# What the compiler says about its own parts.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning")


def pair(name):
    """The outputs of a module as a function, and those of its readable twin."""
    module = MODULES[name]()
    twin = copy.deepcopy(module)
    twin.execution = "readable"
    return (lambda x: flat(module(x))[0]), (lambda x: flat(twin(x))[0])


def assert_all_close(ours, theirs):
    ours, theirs = flat(ours), flat(theirs)
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs):
        assert b.abs().max() > 0
        assert_close(a, b, "result")


TRANSFORMS = {
    "jvp": lambda f, x, y: jvp(f, (x,), (y,)),
    "jacfwd": lambda f, x, y: jacfwd(f)(x),
    "grad": lambda f, x, y: grad(lambda x: f(x).square().sum())(x),
    "vjp": lambda f, x, y: vjp(f, x)[1](f(y)),
    "jacrev": lambda f, x, y: jacrev(f)(x),
    "hessian": lambda f, x, y: hessian(lambda x: f(x).square().sum())(x),
    "vmap": lambda f, x, y: vmap(f)(torch.stack([x, y])),
    "vmap of grad": lambda f, x, y: vmap(grad(lambda x: f(x).square().sum()))(torch.stack([x, y])),
}


@every
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_are_those_of_the_readable_version(name, transform):
    ours, theirs = pair(name)
    x, y = torch.randn(3, 2, 3), torch.randn(3, 2, 3)
    assert_all_close(TRANSFORMS[transform](ours, x, y), TRANSFORMS[transform](theirs, x, y))


@every
@pytest.mark.parametrize("gradients", [True, False])
def test_dual_tensors_have_tangents(name, gradients):
    ours, theirs = pair(name)
    x, t = torch.randn(3, 2, 3), torch.randn(3, 2, 3)
    with torch.set_grad_enabled(gradients), forward_ad.dual_level():
        tangents = [forward_ad.unpack_dual(f(forward_ad.make_dual(x, t))).tangent for f in (ours, theirs)]
    assert_all_close(*tangents)


@pytest.mark.parametrize("name", ["LSTM", "AdaptiveLSTM", "AdaptiveLinear"])
@pytest.mark.parametrize("transform", ["jvp", "grad", "vmap"])
def test_transforms_within_compiled_functions(name, transform):
    torch.compiler.reset()
    ours, theirs = pair(name)
    x, y = torch.randn(2, 2, 3), torch.randn(2, 2, 3)
    compiled = torch.compile(lambda x, y: TRANSFORMS[transform](ours, x, y), backend="aot_eager", fullgraph=True)
    assert_all_close(compiled(x, y), TRANSFORMS[transform](theirs, x, y))


@every
def test_gradients_of_parameters_and_of_a_group_of_modules(name):
    modules = [MODULES[name]() for _ in range(3)]
    parameters, _ = stack_module_state(modules)
    x = torch.randn(3, 2, 3)

    def loss(parameters):
        return flat(functional_call(modules[0], parameters, (x,)))[0].square().sum()

    found = vmap(grad(loss))(parameters)
    for index, module in enumerate(modules):
        flat(module(x))[0].square().sum().backward()
        for key, parameter in module.named_parameters():
            assert_close(found[key][index], parameter.grad, key)


@every
def test_a_batch_of_gradients_of_one_call(name):
    ours, _ = pair(name)
    x = some(3, 2, 3)
    output = ours(x)
    weights = torch.randn(4, *output.shape)
    (found,) = vmap(lambda weight: torch.autograd.grad(output, x, weight, retain_graph=True))(weights)
    for one, weight in zip(found, weights):
        assert_close(one, torch.autograd.grad(output, x, weight, retain_graph=True)[0], "gradient")
    with pytest.raises(RuntimeError, match="no batches of gradients.*torch.func.jacrev.*execution='readable'"):
        torch.autograd.grad(output, x, weights, is_grads_batched=True)


@every
def test_kernels_that_were_insisted_on_refuse_to_be_transformed(name):
    module = MODULES[name](execution="fused")
    x = torch.randn(3, 2, 3)
    flat(module(x))[0].sum().backward()
    for transform in TRANSFORMS.values():
        with pytest.raises(RuntimeError, match="the kernels do not know transformations of torch.func.*execution = 'auto'"):
            transform(lambda x: flat(module(x))[0], x, x)
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="derivatives in forward mode"):
        module(forward_ad.make_dual(x, x))


@pytest.mark.parametrize("name", ["LSTM", "AdaptiveLinear"])
def test_an_exported_program_refuses_tangents(name):
    module, x = MODULES[name]().requires_grad_(False).eval(), torch.randn(3, 2, 3)
    program = torch.export.export(module, (x,)).module()
    with pytest.raises(RuntimeError, match="no derivatives in forward mode"):
        jvp(lambda x: flat(program(x))[0], (x,), (x,))
