"""The operations in graphs: ``opcheck``, ``torch.compile``, ``torch.export``, checkpointing."""

import copy
import io
import shutil

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from adaparam.torch import LSTM, AdaptiveLinear, AdaptiveLSTM
from compare import assert_close, flat, some

MODULES = {
    "LSTM": lambda: LSTM(5, 7, num_layers=2),
    "LSTM, two directions": lambda: LSTM(5, 7, num_layers=2, bidirectional=True, batch_first=True),
    "AdaptiveLSTM": lambda: AdaptiveLSTM(5, 7, 3, num_layers=2),
    "AdaptiveLSTM, static": lambda: AdaptiveLSTM(5, 7, 3, policy="static", adaptation="output"),
}
every = pytest.mark.parametrize("name", MODULES)

# What the compiler says about its own parts.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning")

BACKENDS = ["aot_eager"] + (["inductor"] if shutil.which("g++") or shutil.which("c++") else [])


def window_arguments(module, lengths=None, masks=(), sites=(), keep=True):
    weights = [weight for layer in module.all_weights for weight in layer]
    widths = module._state_widths(0)
    state = [some(module.num_layers, 3, width) for width in widths]
    x = some(4, 3, 5)
    return x, weights, state, list(masks), list(sites), lengths, module._texts[0], "float32", module._owner.id, keep


@pytest.mark.parametrize("name", ["LSTM", "AdaptiveLSTM"])
@pytest.mark.parametrize("ragged", [False, True])
def test_opcheck_of_windows(name, ragged):
    module = MODULES[name]()
    lengths = torch.tensor([4, 1, 3]) if ragged else None
    masks, sites = [torch.full((3, 7), 2.0)], [0]
    arguments = window_arguments(module, lengths, masks, sites)
    torch.library.opcheck(torch.ops.adaparam.window, arguments)
    with torch.no_grad():
        torch.library.opcheck(torch.ops.adaparam.window, window_arguments(module, lengths, keep=False))


@pytest.mark.parametrize("context", [None, 3])
def test_opcheck_of_rows(context):
    module = AdaptiveLinear(6, 5, context_size=context)
    c = None if context is None else some(4, context)
    parameters = [getattr(module, name) for name in module._names]
    arguments = some(4, 6), c, parameters, module._text, module._owner.id, True
    torch.library.opcheck(torch.ops.adaparam.rows, arguments)


@every
@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_without_a_break_it_is_the_same(name, backend):
    torch.compiler.reset()
    module = MODULES[name]()
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    for batch in (3, 4, 6):
        x = some(batch, 4, 5)
        y = x.detach().clone().requires_grad_()
        module.zero_grad()
        expected = flat(module(x))
        sum(tensor.sum() for tensor in expected).backward()
        gradients = [parameter.grad.clone() for parameter in module.parameters()]
        module.zero_grad()
        results = flat(compiled(y))
        sum(tensor.sum() for tensor in results).backward()
        for a, b in zip(results, expected):
            assert_close(a, b, "results")
        assert_close(y.grad, x.grad, "gradient of the input")
        for parameter, gradient in zip(module.parameters(), gradients):
            assert_close(parameter.grad, gradient, "gradient")
    with torch.no_grad():
        for a, b in zip(flat(compiled(x)), flat(module(x))):
            assert_close(a, b, "results without gradients")


def test_a_model_around_the_layers_compiles_whole():
    torch.compiler.reset()

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(11, 5)
            self.lstm = AdaptiveLSTM(5, 7, 3, num_layers=2, dropout_hidden=0.2, dropout_latent=0.1)
            self.out = AdaptiveLinear.from_linear(nn.Linear(7, 2))

        def forward(self, ids, lengths):
            output, state = self.lstm(self.words(ids), lengths=lengths)
            return self.out(state.h_n[-1])

    model = Classifier()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    ids, lengths = torch.randint(11, (6, 4)), torch.tensor([6, 1, 3, 2])
    compiled(ids, lengths).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.eval()
    assert_close(compiled(ids, lengths), model(ids, lengths), "scores")


@every
def test_exported_programs_are_the_same(name):
    module = MODULES[name]().eval()
    x = torch.randn(6, 4, 5)
    with torch.no_grad():
        program = torch.export.export(module, (x,))
        expected = flat(module(x))
        for a, b in zip(flat(program.module()(x)), expected):
            assert_close(a, b, "results")
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        again = torch.export.load(file)
        for a, b in zip(flat(again.module()(x)), expected):
            assert_close(a, b, "results of a file")


def test_an_exported_program_with_any_length():
    module = LSTM(5, 7).eval()
    steps = torch.export.Dim("steps", min=2, max=100)
    with torch.no_grad():
        program = torch.export.export(module, (torch.randn(6, 4, 5),), dynamic_shapes={"input": {0: steps}})
        x = torch.randn(9, 4, 5)
        assert_close(program.module()(x)[0], module(x)[0], "output")


@every
def test_checkpointing_and_saved_tensors_that_are_copied(name):
    module = MODULES[name]()
    x = some(4, 3, 5)
    flat(module(x))[0].sum().backward()
    expected = [parameter.grad.clone() for parameter in module.parameters()]
    module.zero_grad()
    checkpoint(lambda x: module(x)[0], x, use_reentrant=False).sum().backward()
    for parameter, gradient in zip(module.parameters(), expected):
        assert torch.equal(parameter.grad, gradient)
    module.zero_grad()
    # The tape that comes back is a copy: the window is computed again.
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        flat(module(x))[0].sum().backward()
    for parameter, gradient in zip(module.parameters(), expected):
        assert torch.equal(parameter.grad, gradient)


def test_functional_calls():
    module = LSTM(5, 7)
    other = {name: parameter * 0.5 for name, parameter in module.named_parameters()}
    x = torch.randn(4, 3, 5)
    changed = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in changed.parameters():
            parameter.mul_(0.5)
    assert torch.equal(torch.func.functional_call(module, other, (x,))[0], changed(x)[0])
