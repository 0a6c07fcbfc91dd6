"""The modules behave as modules do: copies, files, threads, workers, autocast, frozen parts, odd tensors, mistakes."""

import copy
import gc
import io
import pydoc
import signal
import subprocess
import sys
import threading

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from adaparam import _native
from adaparam.torch import LSTM, AdaptiveLinear, AdaptiveLSTM, free_memory
from compare import assert_close, assert_same, flat, some

MODULES = [lambda **o: LSTM(5, 7, num_layers=2, **o), lambda **o: AdaptiveLSTM(5, 7, 3, num_layers=2, **o)]
NAMES = ["LSTM", "AdaptiveLSTM"]
both = pytest.mark.parametrize("make", MODULES, ids=NAMES)


def gradients(module):
    return [parameter.grad.clone() for parameter in module.parameters()]


@both
def test_two_windows_before_their_backward_passes(make):
    module = make()
    x, y = torch.randn(4, 2, 5), torch.randn(3, 6, 5)
    expected = []
    for input in (x, y):
        module.zero_grad()
        module(input)[0].square().sum().backward()
        expected.append(gradients(module))
    module.zero_grad()
    first, second = module(x)[0].square().sum(), module(y)[0].square().sum()
    first.backward()
    for a, b in zip(gradients(module), expected[0]):
        assert torch.equal(a, b)
    second.backward()
    for a, b, c in zip(gradients(module), *expected):
        assert_close(a, b + c, "sum of both")


@both
def test_a_window_may_be_passed_backward_twice(make):
    module = make()
    loss = module(torch.randn(4, 2, 5))[0].square().sum()
    loss.backward(retain_graph=True)
    once = gradients(module)
    loss.backward()
    for a, b in zip(gradients(module), once):
        assert torch.equal(a, 2 * b)


@both
def test_what_is_kept_is_freed(make):
    gc.collect()
    free_memory()
    kept, waiting = _native.kept_passes(), _native.waiting()
    module = make()
    output, _ = module(torch.randn(4, 2, 5))
    assert _native.kept_passes() == kept + 1
    # Nobody asks for gradients.
    del output, _
    gc.collect()
    assert _native.kept_passes() == kept
    module(torch.randn(4, 2, 5))[0].sum().backward()
    with torch.no_grad():
        module(torch.randn(4, 2, 5))
    assert _native.kept_passes() == kept
    assert _native.waiting() == waiting + 2
    copied = copy.deepcopy(module)
    copied(torch.randn(4, 2, 5))[0].sum().backward()
    assert _native.waiting() == waiting + 3
    del module, copied
    gc.collect()
    assert _native.waiting() == waiting


@both
def test_weights_that_change_are_seen_in_inference(make):
    module = make().eval()
    x = torch.randn(4, 2, 5)
    with torch.no_grad():
        before = module(x)[0]
        assert torch.equal(module(x)[0], before)
        module.weight_hh_l0.mul_(0.5)
        within = module(x)[0]
        assert not torch.equal(within, before)
        # Past the counter of writes.
        module.weight_hh_l0.data.mul_(2)
        assert torch.equal(module(x)[0], before)
        with torch.inference_mode():
            assert torch.equal(module(x)[0], before)
    module.weight_hh_l0 = nn.Parameter(module.weight_hh_l0.detach() * 0.5)
    with torch.no_grad():
        assert torch.equal(module(x)[0], within)


@both
def test_odd_tensors_are_read_right(make):
    module = make()
    x = torch.randn(5, 2, 4)
    turned = x.permute(2, 1, 0)
    assert not turned.is_contiguous()
    assert torch.equal(module(turned)[0], module(turned.contiguous())[0])
    one = torch.randn(4, 1, 5).requires_grad_()
    expanded = one.expand(4, 3, 5)
    module(expanded)[0].sum().backward()
    gradient = one.grad.clone()
    one.grad = None
    module(expanded.contiguous())[0].sum().backward()
    assert_close(gradient, one.grad, "gradient of an expanded input")
    hx = tuple(torch.randn(2, 1, width).requires_grad_() for width in module._state_widths(0))
    module(x.permute(2, 1, 0), tuple(part.expand(2, 2, -1) for part in hx))[0].sum().backward()
    found = [part.grad.clone() for part in hx]
    for part in hx:
        part.grad = None
    module(x.permute(2, 1, 0), tuple(part.expand(2, 2, -1).contiguous() for part in hx))[0].sum().backward()
    for part, gradient in zip(hx, found):
        assert_close(gradient, part.grad, "gradient of an expanded state")
    every_other = torch.randn(8, 2, 5)[::2]
    assert torch.equal(module(every_other)[0], module(every_other.clone())[0])


class _Watching(TorchDispatchMode):
    """Sees every operation, and changes none."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.seen.add(operation.name())
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("make", [*MODULES, lambda: AdaptiveLinear(5, 7)], ids=[*NAMES, "AdaptiveLinear"])
def test_who_watches_sees_the_operations_and_the_same_bits(make):
    module = make()
    x, y = some(4, 2, 5), None
    results = []
    for watching in (False, True):
        y = x.detach().clone().requires_grad_()
        module.zero_grad()
        watch = _Watching()
        if watching:
            with watch:
                outputs = flat(module(y))
                sum(tensor.square().sum() for tensor in outputs).backward()
            name = "rows" if isinstance(module, AdaptiveLinear) else "window"
            assert {f"adaparam::{name}", f"adaparam::{name}_backward"} <= watch.seen
        else:
            outputs = flat(module(y))
            sum(tensor.square().sum() for tensor in outputs).backward()
        results.append([*(tensor.detach() for tensor in outputs), y.grad, *gradients(module)])
    assert all(torch.equal(a, b) for a, b in zip(*results))


def test_weights_of_a_linear_layer_that_change_are_seen_in_inference():
    module, x = AdaptiveLinear(5, 7).eval(), torch.randn(3, 5)
    with torch.no_grad():
        before = module(x)
        assert torch.equal(module(x), before)
        module.policy_weight.add_(1)
        within = module(x)
        assert not torch.equal(within, before)
        module.weight.data.mul_(2)
        assert not torch.equal(module(x), within)
    # After a pass with gradients, and with other parameters in the same place.
    module(x).sum().backward()
    twin = copy.deepcopy(module)
    twin.execution = "readable"
    with torch.no_grad():
        assert_close(module(x), twin(x), "output")


@both
def test_a_parametrized_weight_is_used_and_learns(make):
    module, x = make(), torch.randn(4, 2, 5)
    torch.nn.utils.parametrizations.weight_norm(module, "weight_hh_l0")
    before = module(x)[0]
    before.sum().backward()
    scale = module.parametrizations.weight_hh_l0.original0
    assert scale.grad.abs().max() > 0
    with torch.no_grad():
        scale.mul_(2)
        assert not torch.equal(module(x)[0], before)


@both
def test_dropout_between_layers_may_be_set_later(make):
    module, x = make(), torch.randn(4, 2, 5)
    whole = module(x)[0]
    module.dropout = 0.5
    assert not torch.equal(module(x)[0], module(x)[0])
    module.dropout = 0.0
    assert torch.equal(module(x)[0], whole)
    with pytest.raises(ValueError, match="dropout = 2: must be a number from 0 to 1"):
        module.dropout = 2


INTERRUPTED = """
import signal
import torch
from adaparam.torch import {name}
# A job in the background of a shell is born deaf to it.
signal.signal(signal.SIGINT, signal.default_int_handler)
module, x = {made}, torch.randn(50, 20, 64)
print("ready", flush=True)
while True:
    module(x)[0].sum().backward()
"""


@pytest.mark.parametrize("name, made", [("LSTM", "LSTM(64, 64)"), ("AdaptiveLSTM", "AdaptiveLSTM(64, 64, 8)")])
def test_an_interrupt_ends_a_loop(name, made):
    program = INTERRUPTED.format(name=name, made=made)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGINT)
            _, text = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode != 0 and "KeyboardInterrupt" in text


@both
def test_parts_without_gradients_have_none(make):
    module = make()
    module.weight_hh_l0.requires_grad_(False)
    x = some(4, 2, 5)
    assert_same(module, x)
    assert module.weight_hh_l0.grad is None and module.weight_ih_l0.grad is not None
    module = make().requires_grad_(False)
    y = some(4, 2, 5)
    assert_same(module, y)
    assert all(parameter.grad is None for parameter in module.parameters())
    with torch.no_grad():
        assert not make()(y)[0].requires_grad
    assert not module(y.detach())[0].requires_grad


@both
def test_gradients_of_the_state_alone(make):
    module = make().requires_grad_(False)
    hx = tuple(some(2, 3, width) for width in module._state_widths(0))
    _, final = module(torch.randn(4, 3, 5), hx)
    final[1].sum().backward()
    assert all(part.grad is not None for part in hx)


@both
def test_second_derivatives_are_refused(make):
    module = make()
    x = some(4, 2, 5)
    (gradient,) = torch.autograd.grad(module(x)[0].square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative.*execution='readable'"):
        gradient.sum().backward()
    module.execution = "readable"
    (gradient,) = torch.autograd.grad(module(x)[0].square().sum(), x, create_graph=True)
    gradient.sum().backward()


@both
def test_weights_that_were_written_before_the_backward_pass_are_an_error(make):
    module = make()
    loss = module(torch.randn(4, 2, 5))[0].sum()
    with torch.no_grad():
        module.weight_ih_l0.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@both
def test_copies_and_files(make):
    module = make()
    x = torch.randn(4, 2, 5)
    output = module(x)[0]
    copied = copy.deepcopy(module)
    assert copied._owner.id != module._owner.id
    assert torch.equal(copied(x)[0], output)
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x)[0], output)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other = make()
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(x)[0], output)


@both
def test_results_are_the_same_bits_for_any_number_of_threads(make):
    module, x = make(), torch.randn(9, 4, 5)
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            module.zero_grad()
            output = module(x)[0]
            output.sum().backward()
            results.append([output.detach(), *gradients(module)])
    finally:
        torch.set_num_threads(threads)
    for others in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], others))


@both
def test_threads_of_python_share_a_module(make):
    module = make()
    inputs = [torch.randn(6, 3, 5) for _ in range(4)]
    expected = [module(x)[0] for x in inputs]
    wrong = []

    def work(x, output):
        for _ in range(20):
            if not torch.equal(module(x)[0], output):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class _Computed(torch.utils.data.Dataset):
    """Items that a worker computes with a module of its parent."""

    def __init__(self, module):
        self.module = module

    def __len__(self):
        return 4

    def __getitem__(self, index):
        with torch.no_grad():
            return self.module(torch.full((3, 1, 5), float(index)))[0]


@both
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_of_a_data_loader_compute(make):
    module = make()
    data = _Computed(module)
    # The parent's engine is there before the workers are.
    expected = [data[index] for index in range(4)]
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="fork")
    for item, other in zip(loader, expected):
        assert torch.equal(item, other)


@both
def test_autocast_regions(make):
    module = make()
    x = some(4, 2, 5)
    whole = module(x)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for given in (x, x.detach().bfloat16()):
            output = module(given)[0]
            assert output.dtype is torch.float32
            # Products of numbers of eight bits.
            torch.testing.assert_close(output, whole, rtol=0.05, atol=0.02)
        output.sum().backward()
    assert all(parameter.grad.dtype is torch.float32 for parameter in module.parameters())


@both
def test_other_precisions_are_computed_by_the_readable_version(make):
    module = make()
    x = torch.randn(4, 2, 5)
    output = module(x)[0]
    wide = copy.deepcopy(module).double()
    assert_close(wide(x.double())[0], output, "f64")
    assert wide(x.double())[0].dtype is torch.float64
    narrow = copy.deepcopy(module).bfloat16()(x.bfloat16())[0]
    assert narrow.dtype is torch.bfloat16
    torch.testing.assert_close(narrow.float(), output, rtol=0.1, atol=0.05)
    meta = copy.deepcopy(module).to("meta")
    assert meta(x.to("meta"))[0].shape == output.shape


@both
def test_gradcheck_of_the_readable_version(make):
    module = make().double()
    x = torch.randn(3, 2, 5, dtype=torch.float64, requires_grad=True)
    hx = tuple(torch.randn(2, 2, w, dtype=torch.float64, requires_grad=True) for w in module._state_widths(0))
    lengths = torch.tensor([3, 2])
    assert torch.autograd.gradcheck(lambda x, *hx: flat(module(x, hx, lengths=lengths)), (x, *hx))


@both
def test_mistakes_are_named(make):
    module = make()
    x = torch.randn(4, 2, 5)
    for wrong, error, text in [
        (torch.randn(4, 2, 6), ValueError, r"input: has shape \[4, 2, 6\].*input_size = 5"),
        (torch.randn(5), ValueError, r"input: has shape \[5\]"),
        (torch.randn(0, 2, 5), ValueError, r"a sequence of no steps"),
        (torch.randn(4, 0, 5), ValueError, r"a batch of no rows"),
        (x.double(), TypeError, r"input: has dtype torch.float64, must be torch.float32"),
        (x.to("meta"), ValueError, r"input: is on meta, must be on cpu"),
        ([1.0], TypeError, r"input: is a list"),
    ]:
        with pytest.raises(error, match=text):
            module(wrong)
    widths = module._state_widths(0)
    state = [torch.zeros(2, 2, width) for width in widths]
    with pytest.raises(ValueError, match=r"c_0: has shape \[2, 3, 7\], must be \[2, 2, 7\]"):
        module(x, [state[0], torch.zeros(2, 3, 7), *state[2:]])
    with pytest.raises(ValueError, match="hx: is a Tensor, must be"):
        module(x, state[0])
    with pytest.raises(TypeError, match="h_0: is a list"):
        module(x, [[], *state[1:]])
    for lengths, text in [([4], r"lengths: has shape \[1\]"), ([4, 0], "a row has 0 steps"), ([4, 5], "a row has 5 steps")]:
        with pytest.raises(ValueError, match=text):
            module(x, lengths=torch.tensor(lengths))
    with pytest.raises(TypeError, match="lengths: has dtype torch.float32"):
        module(x, lengths=torch.ones(2))


def test_mistakes_of_construction_are_named():
    for arguments, error, text in [
        ({"hidden_size": 0}, ValueError, "hidden_size = 0: must be at least 1"),
        ({"hidden_size": 2.5}, TypeError, "hidden_size = 2.5: must be a whole number"),
        ({"input_size": True}, TypeError, "input_size = True: must be a whole number"),
        ({"num_layers": 0}, ValueError, "num_layers = 0"),
        ({"hidden_size": [3, 4]}, ValueError, r"hidden_size = \[3, 4\]: has 2 sizes, must have num_layers = 1"),
        ({"dropout_hidden": 1.5}, ValueError, "dropout_hidden = 1.5"),
        ({"policy": "recurent"}, ValueError, "policy = 'recurent': must be 'recurrent' or 'static'"),
        ({"adaptation": "sva"}, ValueError, "adaptation = 'sva': must be 'io', 'input' or 'output'"),
        ({"execution": "fast"}, ValueError, "execution = 'fast'"),
        ({"dropout": "0.5"}, ValueError, "dropout = '0.5': must be a number from 0 to 1"),
        ({"proj_size": 2.5}, TypeError, "proj_size = 2.5: must be a whole number"),
        ({"proj_size": -1}, ValueError, "proj_size = -1: must be at least 1"),
        ({"proj_size": 7}, ValueError, "proj_size = 7: must be smaller"),
        ({"bidirectional": True, "num_layers": 2}, ValueError, "choose summary = 'own'"),
    ]:
        with pytest.raises(error, match=text):
            AdaptiveLSTM(**{"input_size": 5, "hidden_size": 7, "latent_size": 3, **arguments})
    with pytest.warns(UserWarning, match="acts between layers"):
        LSTM(5, 7, dropout=0.2)
    fused = LSTM(5, 7, proj_size=3, execution="fused")
    with pytest.raises(RuntimeError, match="the kernels do not know proj_size"):
        fused(torch.randn(3, 2, 5))


def test_modules_of_another_kind_are_not_taken_over():
    for take, text in [
        (lambda: AdaptiveLinear.from_linear(nn.Conv1d(3, 4, 1)), "from_linear: got a torch.nn.Conv1d, must be a torch.nn.Linear"),
        (lambda: LSTM.from_torch(nn.GRU(3, 4)), "from_torch: got a torch.nn.GRU, must be a torch.nn.LSTM or adaparam.torch.LSTM"),
        (lambda: LSTM.from_torch(nn.LSTM), "from_torch: got the class LSTM, must be"),
        (lambda: AdaptiveLSTM.from_lstm(nn.RNN(3, 4), 2), "from_lstm: got a torch.nn.RNN, must be"),
        (lambda: AdaptiveLSTM.from_lstm(None, 2), "from_lstm: got a NoneType, must be"),
    ]:
        with pytest.raises(TypeError, match=text):
            take()


@both
def test_layers_that_skip_are_the_readable_ones(make):
    given = {"num_layers": 3, "hidden_size": [5, 5, 7], "input_size": 5, "skip": True, "dropout_hidden": 0.3}
    if make is MODULES[1]:
        given |= {"latent_size": 3, "policy_start": "identity"}
    kind = type(make())
    for hidden in ([5, 5, 7], 5):
        module = kind(**{**given, "hidden_size": hidden, "execution": "fused"})
        assert "skip=True" in repr(module)
        assert_same(module, some(4, 3, 5))
        assert_same(module, some(4, 3, 5), lengths=torch.tensor([4, 1, 2]))
    module.eval()
    x = torch.randn(4, 3, 5)
    output, state = module(x)
    # The input of the highest layer is in its output, and not in what it carries.
    assert not torch.allclose(output[-1], state[0][-1])
    module.skip = False
    module._set_stacks()
    assert not torch.allclose(module(x)[0], output)


def test_what_skips_is_taken_over():
    lstm, x = LSTM(5, 5, num_layers=2, skip=True), torch.randn(4, 3, 5)
    assert torch.equal(LSTM.from_torch(lstm)(x)[0], lstm(x)[0])
    assert_close(AdaptiveLSTM.from_lstm(lstm, 3)(x)[0], lstm(x)[0], "output")
    for wrong, text in [({"bidirectional": True}, "neither bidirectional nor proj_size"), ({"dropout": 0.5}, "choose dropout_hidden")]:
        with pytest.raises(ValueError, match=text):
            LSTM(5, 5, num_layers=2, skip=True, **wrong)
    with pytest.raises(ValueError, match="dropout = 0.5: does not go with skip"):
        lstm.dropout = 0.5


@both
def test_help_and_representation_read_well(make):
    module = make(batch_first=True)
    assert repr(module).splitlines()[0].endswith(")")
    assert "batch_first=True" in repr(module) and "num_layers=2" in repr(module)
    text = pydoc.plain(pydoc.render_doc(type(module)))
    for part in ("Args:", "Shapes:", "Example:", "batch_first", "lengths: how many steps"):
        assert part in text, part
