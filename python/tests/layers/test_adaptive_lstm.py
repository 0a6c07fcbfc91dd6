"""``AdaptiveLSTM`` on kernels is the readable version, for every option."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from adaparam.torch import LSTM, AdaptiveLSTM, AdaptiveState
from compare import assert_close, assert_same, fix_masks, flat, some


def state(module, batch):
    rows = module.num_layers * (2 if module.bidirectional else 1)
    return tuple(some(rows, batch, width) for width in module._state_widths(0))


KINDS = list(itertools.product(["recurrent", "static"], ["hybrid", "own"], ["io", "input", "output"]))


@pytest.mark.parametrize("policy, summary, adaptation", KINDS)
@pytest.mark.parametrize("others", [{}, {"policy_start": "identity", "bias": False}, {"layout": "released"}], ids=str)
def test_results_and_gradients_of_every_kind(policy, summary, adaptation, others):
    kind = {"policy": policy, "summary": summary, "adaptation": adaptation, **others}
    module = AdaptiveLSTM(5, 7, 3, num_layers=2, execution="fused", **kind)
    assert_same(module, some(4, 3, 5), state(module, 3))
    assert_same(module, some(4, 3, 5), state(module, 3), lengths=torch.tensor([4, 1, 2]))


@pytest.mark.parametrize(
    "options",
    [
        {"num_layers": 3, "batch_first": True},
        {"bidirectional": True},
        {"bidirectional": True, "num_layers": 2, "summary": "own", "policy": "static"},
        {"proj_size": 4, "num_layers": 2},
        {"proj_size": 4, "bidirectional": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("lengths", [None, [4, 1, 2]], ids=str)
def test_results_and_gradients_of_every_arrangement(options, lengths):
    module = AdaptiveLSTM(5, 7, 3, **options)
    shape = (3, 4, 5) if module.batch_first else (4, 3, 5)
    lengths = None if lengths is None else torch.tensor(lengths)
    assert_same(module, some(*shape), state(module, 3), lengths=lengths)


def test_a_new_stack_is_as_loud_as_the_documents_say():
    def loudness(layers, policy_start):
        module = AdaptiveLSTM(16, 32, 8, layers, policy_start=policy_start)
        with torch.no_grad():
            return module(torch.randn(35, 20, 16))[0].double().square().mean().sqrt()

    for layers, most in [(1, 3e-4), (2, 5e-9), (3, 1e-13), (4, 1e-30)]:
        assert loudness(layers, "paper") < most
        assert loudness(layers, "identity") > 1e-3
    with pytest.raises(ValueError, match="policy_start = 'one': must be 'paper' or 'identity'"):
        AdaptiveLSTM(16, 32, 8, policy_start="one")


def test_packed_sequences_are_padded_ones_with_lengths():
    module = AdaptiveLSTM(5, 7, 3, num_layers=2)
    rows = [torch.randn(length, 5) for length in (2, 4, 1)]
    output, final = module(pack_sequence(rows, enforce_sorted=False))
    padded = nn.utils.rnn.pad_sequence(rows)
    expected, expected_final = module(padded, lengths=torch.tensor([2, 4, 1]))
    assert_close(nn.utils.rnn.pad_packed_sequence(output)[0], expected, "output")
    for a, b in zip(final, expected_final):
        assert_close(a, b, "state")


@pytest.mark.parametrize("policy", ["recurrent", "static"])
def test_the_state_carries_everything_over_to_the_next_window(policy):
    module = AdaptiveLSTM(5, 7, 3, num_layers=2, policy=policy)
    x = torch.randn(6, 2, 5)
    whole, last = module(x)
    first, between = module(x[:2])
    assert isinstance(between, AdaptiveState)
    assert (between.z_cell_n is None) == (policy == "static")
    # As training loops detach a state.
    second, end = module(x[2:], tuple(part.detach() for part in between if part is not None))
    assert_close(torch.cat([first, second]), whole, "output")
    for a, b in zip(flat(end), flat(last)):
        assert_close(a, b, "state")


def test_without_latent_state_it_has_the_state_of_an_lstm():
    module = AdaptiveLSTM(5, 7, 3, latent_state=False)
    output, (h, c) = module(torch.randn(4, 2, 5))
    assert torch.equal(output[-1], h[0]) and c.shape == h.shape
    assert module(torch.randn(4, 2, 5), (h, c))[0].shape == (4, 2, 7)


@pytest.mark.parametrize(
    "options",
    [
        {"dropout_hidden": 0.4, "dropout_latent": 0.3},
        {"dropout_latent": 0.3, "policy": "static"},
        {"dropout": 0.4, "summary": "own"},
        {"dropout": 0.4},
        {"dropout": 0.3, "summary": "own", "dropout_latent": 0.2},
    ],
    ids=str,
)
def test_dropout_has_the_gradients_of_the_readable_version(options, monkeypatch):
    module = AdaptiveLSTM(5, 7, 3, num_layers=2, **options)
    drawn = fix_masks(monkeypatch, AdaptiveLSTM)
    assert_same(module, some(4, 3, 5), state(module, 3))
    assert drawn and all(drawn.values())


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_it_can_begin_as_exactly_the_lstm_that_it_takes_over(bidirectional, bias):
    lstm = nn.LSTM(5, 7, num_layers=2, bidirectional=bidirectional, bias=bias, batch_first=True)
    module = AdaptiveLSTM.from_lstm(lstm, latent_size=3)
    x = torch.randn(2, 6, 5)
    (a, final), (b, (h, c)) = module(x), lstm(x)
    assert_close(a, b, "output")
    assert_close(final.h_n, h, "hidden state")
    assert_close(final.c_n, c, "cell state")
    ours = AdaptiveLSTM.from_lstm(LSTM.from_torch(lstm), latent_size=3)
    assert_close(ours(x)[0], b, "output")


def test_policies_say_how_weights_were_adapted():
    module = AdaptiveLSTM(5, 7, 3, num_layers=2, batch_first=True)
    x = torch.randn(2, 4, 5)
    first, second = module.policies(x)
    shapes = {name: tuple(part.shape) for name, part in second.items()}
    assert shapes == {
        "input": (2, 4, 7),
        "hidden": (2, 4, 7),
        "input_product": (2, 4, 28),
        "hidden_product": (2, 4, 28),
        "bias": (2, 4, 28),
        "latent": (2, 4, 3),
    }
    _, final = module(x)
    assert_close(first["latent"][:, -1], final.z_n[0], "latent variable")
    assert all(part.abs().max() <= 1 for name, part in first.items() if name != "latent")


def test_a_new_module_has_semi_orthogonal_matrices_and_open_forget_gates():
    module = AdaptiveLSTM(5, 7, 3)
    weight = module.weight_hh_l0.detach()
    assert_close(weight.T @ weight, torch.eye(7), "product")
    assert module.bias_l0.tolist() == [0] * 7 + [1] * 7 + [0] * 14
    assert module.latent_bias_ih_l0.tolist() == [0] * 3 + [1] * 3 + [0] * 6
