"""Text by a model that `adaparam export RUN --onnx model.onnx` wrote.

    pip install onnxruntime numpy
    python generate.py model.onnx --prompt "call me" --words 50
"""

import argparse

import numpy as np
import onnxruntime


class Model:
    """One step at a time: word numbers and states in, scores and states out."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        about = self.session.get_modelmeta().custom_metadata_map
        words = about["adaparam.vocabulary"].splitlines()
        if words[0].startswith("# tokens: "):
            words = words[1:]
        self.words, self.line_end = words, int(about["adaparam.line_end"])
        self.ids = {word: number for number, word in enumerate(words)}

    def zero_state(self, batch=1):
        states = self.session.get_inputs()[1:]
        return {state.name: np.zeros((batch, state.shape[1]), np.float32) for state in states}

    def step(self, ids, state, with_policies=False):
        """The scores of every word as the next one, `[batch, V]`, the state to go on from, and the policies if asked for."""
        policies = [output.name for output in self.session.get_outputs() if output.name.startswith("policy.")]
        wanted = ["logits"] + [f"next.{name}" for name in state] + (policies if with_policies else [])
        found = dict(zip(wanted, self.session.run(wanted, {"ids": np.asarray(ids, np.int64), **state})))
        state = {name: found[f"next.{name}"] for name in state}
        return found["logits"], state, [found[name] for name in policies if name in found]


def generate(model, prompt, words, temperature, seed):
    random = np.random.default_rng(seed)
    state, given = model.zero_state(), prompt.split()
    word = model.line_end  # a text begins where a line has ended
    for place in range(len(given) + words):
        logits, state, _ = model.step([word], state)
        if place < len(given):
            word = model.ids[given[place]]
        elif temperature == 0:
            word = int(logits[0].argmax())
        else:
            scores = logits[0].astype(np.float64) / temperature
            weights = np.exp(scores - scores.max())
            word = int(random.choice(len(weights), p=weights / weights.sum()))
        yield model.words[word]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--prompt", default="")
    parser.add_argument("--words", type=int, default=50)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    print(" ".join(generate(Model(told.model), told.prompt, told.words, told.temperature, told.seed)))
