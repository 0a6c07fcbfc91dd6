"""``adaparam.numpy`` opens what the command writes."""

import hashlib
import json

import numpy as np
import pytest

from adaparam import _native, _safetensors
from adaparam.numpy import load

WORDS = ["<eos>", "a", "b", "c", "<unk>"]
CELLS = {
    "lstm": {"kind": "lstm", "bias": True},
    "adaptive-lstm": {
        "kind": "adaptive-lstm",
        "latent": 3,
        "policy": "recurrent",
        "summary": "hybrid",
        "adaptation": "io",
        "tying": "tied",
        "layout": "paper",
        "bias": True,
        "policy_start": "paper",
    },
}
EMBEDDING, HIDDEN = 4, 6


def config(kind):
    model = {"embedding": EMBEDDING, "hidden": HIDDEN, "layers": 2, "skip": False, "cell": CELLS[kind]}
    return {"data": {}, "model": {**model, "head": {"kind": "tied-softmax"}}, "train": {"seed": 1}}


def tensors(kind, seed=1):
    draws = np.random.default_rng(seed)
    some = lambda *shape: draws.normal(0, 0.5, shape).astype(np.float32)
    all = {"encoder.weight": some(len(WORDS), EMBEDDING), "decoder.bias": some(len(WORDS))}
    for layer, (below, width) in enumerate([(EMBEDDING, HIDDEN), (HIDDEN, EMBEDDING)]):
        if kind == "lstm":
            all[f"rnns.{layer}.weight_ih_l0"] = some(4 * width, below)
            all[f"rnns.{layer}.weight_hh_l0"] = some(4 * width, width)
            all[f"rnns.{layer}.bias_ih_l0"] = some(4 * width)
            continue
        all[f"rnns.adapt_layers.{layer}.weight_ih"] = some(12, below + width + 3)
        all[f"rnns.adapt_layers.{layer}.weight_hh"] = some(12, 3)
        all[f"rnns.adapt_layers.{layer}.bias_ih"] = some(12)
        all[f"rnns.adapt_layers.{layer}.bias_hh"] = some(12)
        all[f"rnns.project_layers.{layer}.linear.weight"] = some(below + width + 12 * width, 3)
        all[f"rnns.alstm_layers.{layer}.weight_ih"] = some(4 * width, below)
        all[f"rnns.alstm_layers.{layer}.weight_hh"] = some(4 * width, width)
        all[f"rnns.alstm_layers.{layer}.bias"] = some(4 * width)
    return all


@pytest.fixture(params=list(CELLS))
def kind(request):
    return request.param


@pytest.fixture
def file(tmp_path, kind):
    """As `adaparam export` writes it."""
    path = tmp_path / "model.safetensors"
    note = {"format": 3, "corpus": "sum", "vocabulary": "\n".join(WORDS) + "\n", "config": config(kind)}
    _safetensors.write(path, tensors(kind), note)
    return path


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(u, c):
    i, f, z, o = np.split(u, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(z)
    return sigmoid(o) * np.tanh(c), c


def expected_scores(kind, ids):
    """The model in f64, a step at a time, as the paper has it."""
    w = {name: tensor.astype(np.float64) for name, tensor in tensors(kind).items()}
    widths = [HIDDEN, EMBEDDING]
    h, c = [np.zeros(n) for n in widths], [np.zeros(n) for n in widths]
    z, zc = [np.zeros(3) for _ in widths], [np.zeros(3) for _ in widths]
    scores = []
    for id in ids:
        x, other = w["encoder.weight"][id], z[-1]
        for l, n in enumerate(widths):
            if kind == "lstm":
                u = w[f"rnns.{l}.weight_ih_l0"] @ x + w[f"rnns.{l}.weight_hh_l0"] @ h[l] + w[f"rnns.{l}.bias_ih_l0"]
            else:
                at = f"rnns.adapt_layers.{l}."
                seen = np.concatenate([x, h[l], other])
                latent = w[at + "weight_ih"] @ seen + w[at + "bias_ih"] + w[at + "weight_hh"] @ z[l] + w[at + "bias_hh"]
                z[l], zc[l] = cell(latent, zc[l])
                pi = np.tanh(w[f"rnns.project_layers.{l}.linear.weight"] @ z[l])
                d1, d2, d3, d4, d0 = np.split(pi, np.cumsum([len(x), n, 4 * n, 4 * n]))
                main = f"rnns.alstm_layers.{l}."
                u = d3 * (w[main + "weight_ih"] @ (d1 * x)) + d4 * (w[main + "weight_hh"] @ (d2 * h[l])) + d0 * w[main + "bias"]
                other = z[l]
            h[l], c[l] = cell(u, c[l])
            x = h[l]
        scores.append(w["encoder.weight"] @ x + w["decoder.bias"])
    return np.array(scores)


def test_scores_are_those_of_the_equations(file, kind):
    ids = [0, 1, 3, 2, 2, 4]
    np.testing.assert_allclose(load(file).scores(ids), expected_scores(kind, ids), rtol=1e-4, atol=1e-5)


def test_texts_side_by_side_are_texts_alone(file):
    model = load(file, threads=1)
    columns = np.array([[0, 3], [1, 2], [2, 2]])
    scores = model.scores(columns)
    assert scores.shape == (3, 2, 5)
    for column in range(2):
        np.testing.assert_allclose(scores[:, column], model.scores(columns[:, column]), rtol=1e-5, atol=1e-6)
    costs = -model.log_probabilities([1, 2, 3])
    before = model.scores([0, 1, 2]).astype(np.float64)
    total = np.log(np.exp(before).sum(-1))
    np.testing.assert_allclose(costs, total - before[np.arange(3), [1, 2, 3]], rtol=1e-6)
    assert model.perplexity("a b c") == pytest.approx(np.exp(costs.mean()), rel=1e-6)


def test_texts_are_drawn_again_and_unknown_words_never(file):
    model = load(file)
    text = model.generate("a b", 30, seed=3)
    assert text.startswith("a b") and text == model.generate("a b", 30, seed=3)
    assert text != model.generate("a b", 30, seed=4) and "<unk>" not in text
    likeliest = model.generate("a", 5, temperature=0)
    assert likeliest == model.generate("a", 5, top_k=1, seed=9) == model.generate("a", 5, top_p=1e-9, seed=9)
    for wrong in ({"temperature": -1}, {"top_p": 0}, {"top_k": -1}):
        with pytest.raises(ValueError, match="must be"):
            model.generate("a", 5, **wrong)


def test_policies_of_every_token(file, kind):
    model = load(file)
    seen = model.policies([0, 1, 2])
    assert seen["layers.0.gates"].shape == (3, 4 * HIDDEN)
    has_policy = "layers.1.policy.input_product" in seen
    assert has_policy == (kind == "adaptive-lstm")
    if has_policy:
        assert seen["layers.1.policy.input_product"].shape == (3, 4 * EMBEDDING)
        assert np.abs(seen["layers.0.policy.input"]).max() <= 1


def test_words_go_to_ids_and_back(file):
    model = load(file)
    assert model.encode("a c zebra").tolist() == [1, 3, 4]
    assert model.decode([1, 3, 0, 2]) == "a c\nb"
    assert model.vocabulary == WORDS and "5 words" in repr(model)


def checkpoint(folder, kind, seed, best=None, averaged=False):
    folder.mkdir(parents=True)
    empty = {"adaparam": "{}"}
    weights, average = tensors(kind, seed), {}
    if averaged:
        average = {f"average.{name}": tensor for name, tensor in tensors(kind, 1).items()}
    _safetensors.write(folder / "weights.safetensors", weights, empty)
    _safetensors.write(folder / "optimiser.safetensors", average, empty)
    _safetensors.write(folder / "state.safetensors", {}, empty)
    (folder / "vocabulary.txt").write_text("\n".join(WORDS) + "\n")
    optimiser = {"updates": 1.0, **({"averaged": 2.0} if averaged else {})}
    head = {"format": 2, "counters": {"best": best}, "corpus": "sum", "optimiser": optimiser, "config": config(kind)}
    (folder / "checkpoint.json").write_text(json.dumps(head))
    files = sorted(one for one in folder.iterdir())
    sums = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}" for one in files]
    (folder / "SHA256SUMS").write_text("\n".join(sums) + "\n")


def test_of_a_run_the_best_checkpoint_is_taken(tmp_path, file, kind):
    expected = load(file).scores([0, 1])
    run = tmp_path / "run"
    checkpoint(run / "checkpoints" / "step-00000010-epoch-1", kind, 1)
    checkpoint(run / "checkpoints" / "step-00000020-epoch-2", kind, 2, {"checkpoint": "step-00000010-epoch-1"})
    assert np.array_equal(load(run).scores([0, 1]), expected)
    newest = run / "checkpoints" / "step-00000020-epoch-2"
    assert not np.array_equal(load(newest).scores([0, 1]), expected)
    # Averaged weights are what a model is evaluated with.
    checkpoint(tmp_path / "averaged", kind, 2, averaged=True)
    assert np.array_equal(load(tmp_path / "averaged").scores([0, 1]), expected)
    (newest / "vocabulary.txt").write_text("other\n")
    with pytest.raises(ValueError, match="the checkpoint is damaged: vocabulary.txt is not what was written"):
        load(newest)
    with pytest.warns(UserWarning, match="an earlier one is taken"):
        assert np.array_equal(load(run).scores([0, 1]), expected)


def test_mistakes_and_damaged_files_are_named(tmp_path, file):
    model = load(file)
    with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
        load(tmp_path / "nothing")
    with pytest.raises(ValueError, match="holds no checkpoint"):
        load(tmp_path)
    for ids, error in [([5], ValueError), ([-1], ValueError), ([], ValueError), ([0.5], TypeError)]:
        with pytest.raises(error, match="ids"):
            model.scores(ids)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(content)
    with pytest.raises(ValueError, match="is not what was written, by its SHA-256"):
        load(damaged)
    for content in (b"", b"something else", (10**9).to_bytes(8, "little") + b"{}"):
        damaged.write_bytes(content)
        with pytest.raises(ValueError, match="this is no safetensors file"):
            load(damaged)


def test_what_does_not_open_here_is_named(tmp_path):
    untied = {**CELLS["adaptive-lstm"], "tying": "untied"}
    for cell, head, text in [
        ({"kind": "gru"}, "tied-softmax", "model.cell.kind = gru: only models of lstm.* `adaparam generate`"),
        (untied, "tied-softmax", "model.cell.tying = untied: only models of lstm.* `adaparam generate`"),
        (CELLS["lstm"], "mixture", "model.head.kind = mixture: only tied-softmax and softmax"),
    ]:
        of = config("lstm")
        of["model"] |= {"cell": cell, "head": {"kind": head}}
        path = tmp_path / "other.safetensors"
        note = {"format": 3, "corpus": "sum", "vocabulary": "\n".join(WORDS) + "\n", "config": of}
        _safetensors.write(path, tensors("lstm"), note)
        with pytest.raises(ValueError, match=text):
            load(path)


def test_a_softmax_with_weights_of_its_own(tmp_path, kind):
    of, own = config(kind), tensors(kind)
    of["model"]["head"] = {"kind": "softmax"}
    own["decoder.weight"] = 2 * own["encoder.weight"]
    path = tmp_path / "model.safetensors"
    note = {"format": 3, "corpus": "sum", "vocabulary": "\n".join(WORDS) + "\n", "config": of}
    _safetensors.write(path, own, note)
    expected = 2 * (expected_scores(kind, [0, 1, 3]) - own["decoder.bias"]) + own["decoder.bias"]
    np.testing.assert_allclose(load(path).scores([0, 1, 3]), expected, rtol=1e-4, atol=1e-5)


def test_the_native_part_checks_what_it_is_given():
    with pytest.raises(ValueError, match="unknown variant|missing field"):
        _native.Stack('{"kind": "gru"}')
    with pytest.raises(ValueError, match="must be from 1"):
        _native.Stack('{"kind": "lstm", "input": 0, "hidden": [3], "bias": true, "between": false}')
