"""``LSTM`` is ``torch.nn.LSTM``."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from adaparam.torch import LSTM
from compare import assert_close, assert_same, fix_masks, flat, some

# PyTorch says that its own projections are slower.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections")

OPTIONS = [
    {},
    {"bias": False},
    {"num_layers": 3},
    {"batch_first": True},
    {"bidirectional": True},
    {"bidirectional": True, "num_layers": 2, "batch_first": True},
    {"num_layers": 2, "bias": False, "bidirectional": True},
    {"proj_size": 3},
    {"proj_size": 3, "num_layers": 2, "bidirectional": True},
]


def pair(**options):
    """PyTorch's module and ours with its parameters."""
    theirs = nn.LSTM(5, 7, **options)
    ours = LSTM(5, 7, **options)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def state(module, batch, grad=True):
    rows = module.num_layers * (2 if module.bidirectional else 1)
    hidden = module.proj_size or module.hidden_size
    return some(rows, batch, hidden, grad=grad), some(rows, batch, module.hidden_size, grad=grad)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_results_and_gradients_are_those_of_pytorch(options):
    ours, theirs = pair(**options)
    x = some(*((3, 6, 5) if ours.batch_first else (6, 3, 5)))
    hx = state(ours, 3)
    y = x.detach().clone().requires_grad_()
    hy = tuple(part.detach().clone().requires_grad_() for part in hx)
    a, b = flat(ours(x, hx)), flat(theirs(y, hy))
    weights = [torch.randn_like(tensor) for tensor in a]
    for one, other in zip(a, b):
        assert_close(one, other, "results")
    sum((tensor * weight).sum() for tensor, weight in zip(a, weights)).backward()
    sum((tensor * weight).sum() for tensor, weight in zip(b, weights)).backward()
    for one, other in zip((x, *hx, *ours.parameters()), (y, *hy, *theirs.parameters())):
        assert_close(one.grad, other.grad, "gradients")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_state_dict_goes_both_ways_and_draws_are_the_same(options):
    ours, theirs = pair(**options)
    theirs.load_state_dict(ours.state_dict())
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    torch.manual_seed(3)
    a = LSTM(5, 7, **options)
    torch.manual_seed(3)
    b = nn.LSTM(5, 7, **options)
    for one, other in zip(a.parameters(), b.parameters()):
        assert torch.equal(one, other)
    copy = LSTM.from_torch(theirs)
    assert all(torch.equal(a, b) for a, b in zip(copy.parameters(), theirs.parameters()))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("sort", [True, False])
def test_packed_sequences_are_those_of_pytorch(options, sort):
    ours, theirs = pair(**options)
    lengths = [6, 4, 1] if sort else [1, 6, 4]
    packed = pack_sequence([torch.randn(length, 5) for length in lengths], enforce_sorted=sort)
    hx = state(ours, 3, grad=False)
    a, b = ours(packed, hx), theirs(packed, hx)
    assert torch.equal(a[0].batch_sizes, b[0].batch_sizes)
    padded = [pad_packed_sequence(result[0]) for result in (a, b)]
    assert torch.equal(padded[0][1], padded[1][1])
    for one, other in zip(flat([padded[0][0], a[1]]), flat([padded[1][0], b[1]])):
        assert_close(one, other, "packed results")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gradients_of_ragged_batches_are_those_of_the_readable_version(options):
    ours = LSTM(5, 7, **options)
    shape = (3, 6, 5) if ours.batch_first else (6, 3, 5)
    assert_same(ours, some(*shape), state(ours, 3), lengths=torch.tensor([6, 1, 4]))


def test_one_sequence_without_a_batch():
    ours, theirs = pair(num_layers=2)
    x, hx = torch.randn(6, 5), (torch.randn(2, 7), torch.randn(2, 7))
    for one, other in zip(flat(ours(x, hx)), flat(theirs(x, hx))):
        assert one.shape == other.shape
        assert_close(one, other, "results")


def test_what_is_behind_the_end_of_a_row_has_no_influence():
    ours = LSTM(5, 7, num_layers=2)
    x = torch.randn(6, 2, 5)
    lengths = torch.tensor([6, 3])
    first = flat(ours(x, lengths=lengths))
    x[3:, 1] = float("nan")
    x.requires_grad_()
    second = flat(ours(x, lengths=lengths))
    for one, other in zip(first, second):
        assert torch.equal(one, other)
    assert not second[0][3:, 1].any()
    sum(tensor.sum() for tensor in second).backward()
    assert not x.grad[3:, 1].any()
    assert all(parameter.grad.isfinite().all() for parameter in ours.parameters())


@pytest.mark.parametrize(
    "options",
    [
        {"dropout": 0.4, "num_layers": 3},
        {"dropout_hidden": 0.4, "num_layers": 2},
        {"dropout_hidden": 0.4},
        {"dropout": 0.3, "dropout_hidden": 0.4, "num_layers": 2},
        {"dropout_hidden": 0.2, "num_layers": 2, "bidirectional": True},
    ],
    ids=str,
)
def test_dropout_has_the_gradients_of_the_readable_version(options, monkeypatch):
    ours = LSTM(5, 7, **options)
    drawn = fix_masks(monkeypatch, LSTM)
    assert_same(ours, some(6, 3, 5), state(ours, 3))
    assert drawn and all(drawn.values())
    ours.eval()
    a, b = ours(torch.ones(2, 1, 5)), ours(torch.ones(2, 1, 5))
    assert torch.equal(a[0], b[0])


def test_dropout_between_layers_draws_anew_at_every_step_and_keeps_the_mean():
    ours = LSTM(5, 64, num_layers=2, dropout=0.5)
    shape = ours._stacks[0][0]
    masks = ours._masks(0, torch.zeros(50, 8, 5))
    assert list(masks) == ["layers.1.inter_layer"] and shape.between
    mask = masks["layers.1.inter_layer"]
    assert mask.shape == (50, 8, 64)
    assert set(mask.unique().tolist()) == {0.0, 2.0}
    # 25,600 draws: five standard deviations of their mean.
    assert abs(mask.mean().item() - 1) < 5 / 25600**0.5
    assert not torch.equal(mask[0], mask[1])


def test_layers_of_different_sizes():
    ours = LSTM(5, [7, 4, 6], num_layers=3)
    hx = tuple([some(1, 2, width) for width in (7, 4, 6)] for _ in "hc")
    assert_same(ours, some(4, 2, 5), hx)
    output, (h, c) = ours(torch.randn(4, 2, 5))
    assert output.shape == (4, 2, 6) and [part.shape[-1] for part in h] == [7, 4, 6]
    again, _ = ours(torch.randn(3, 2, 5), (h, c))
    assert again.shape == (3, 2, 6)
