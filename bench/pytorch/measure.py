"""One measurement of one PyTorch model; prints one line of JSON.

    python3 bench/pytorch/measure.py --what step --preset ptb-17m --threads 2 --repetitions 5

`step` is a training step with dropout; `eval` the loss of a window without gradients; `generate` one word drawn at a
time. `--autocast` computes in PyTorch's mixed precision of bf16. The figure is the median over the repetitions; warm-up
does not count.
"""

import argparse
import json
import resource
import statistics
import time
from dataclasses import dataclass

import torch

from alstm import AdaptiveLstm
from language_model import LanguageModel, optimiser_of, training_step
from lstm import Lstm

VOCABULARY = 10_000
TRAIN_BATCH = 20
EVAL_BATCH = 10
EVAL_WINDOW = 70


@dataclass(frozen=True)
class Preset:
    """Sizes of a model. A plain LSTM has no latent, and converges only with clipped gradients."""

    embedding: int
    hidden: int
    latent: int | None
    window: int
    parameters: int
    clip: float | None = None

    def model(self):
        d_hidden = [self.hidden, self.embedding]
        stack = Lstm(self.embedding, d_hidden) if self.latent is None else AdaptiveLstm(self.embedding, d_hidden, self.latent)
        model = LanguageModel(VOCABULARY, self.embedding, stack)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        assert parameters == self.parameters, f"{parameters} parameters instead of {self.parameters}"
        return model


PRESETS = {
    "ptb-17m": Preset(embedding=400, hidden=1150, latent=100, window=70, parameters=17_197_800),
    "small": Preset(embedding=100, hidden=200, latent=30, window=35, parameters=1_584_080),
    "ptb-lstm-20m": Preset(embedding=400, hidden=1600, latent=None, window=70, parameters=20_026_000, clip=5.0),
}


def seconds_of(repetitions, warm_up, action):
    for _ in range(warm_up):
        action()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return times


def step_times(preset, repetitions):
    model = preset.model().train()
    optimiser = optimiser_of(model)
    words = torch.randint(VOCABULARY, (preset.window + 1, TRAIN_BATCH))
    state = model.recurrent.zero_state(TRAIN_BATCH)

    def step():
        nonlocal state
        loss, state = training_step(model, optimiser, words[:-1], words[1:], state, preset.clip)
        return loss.item()

    return seconds_of(repetitions, 2, step), preset.window * TRAIN_BATCH


@torch.inference_mode()
def eval_times(preset, repetitions):
    model = preset.model().eval()
    words = torch.randint(VOCABULARY, (EVAL_WINDOW + 1, EVAL_BATCH))
    state = model.recurrent.zero_state(EVAL_BATCH)

    def window():
        nonlocal state
        loss, state = model.loss(words[:-1], words[1:], state)
        return loss.item()

    return seconds_of(repetitions, 2, window), EVAL_WINDOW * EVAL_BATCH


@torch.inference_mode()
def generate_times(preset, repetitions):
    model = preset.model().eval()
    word = torch.randint(VOCABULARY, (1, 1))
    state = model.recurrent.zero_state(1)

    def next_word():
        nonlocal word, state
        logits, state = model(word, state)
        word = torch.multinomial(logits[0].softmax(-1), 1)
        return word.item()

    return seconds_of(repetitions, 20, next_word), 1


def peak_rss_mb():
    """Of this process alone: what getrusage says can come from the process that started it."""
    try:
        with open("/proc/self/status", encoding="utf-8") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    measures = {"step": step_times, "eval": eval_times, "generate": generate_times}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=measures, default="step")
    parser.add_argument("--preset", choices=PRESETS, default="ptb-17m")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--autocast", action="store_true", help="mixed precision of bf16")
    parser.add_argument("--repetitions", type=int, help="default: 5 steps, 10 windows or 300 words")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    preset = PRESETS[arguments.preset]
    repetitions = arguments.repetitions or {"step": 5, "eval": 10, "generate": 300}[arguments.what]
    with torch.autocast("cpu", torch.bfloat16, enabled=arguments.autocast):
        times, words = measures[arguments.what](preset, repetitions)
    median = statistics.median(times)
    print(
        json.dumps(
            {
                "what": arguments.what,
                "preset": arguments.preset,
                "threads": arguments.threads,
                "autocast": arguments.autocast,
                "repetitions": repetitions,
                "ms_per_step": round(1e3 * median, 3),
                "ms_fastest": round(1e3 * min(times), 3),
                "ms_slowest": round(1e3 * max(times), 3),
                "words_per_s": round(words / median, 1),
                "peak_rss_mb": round(peak_rss_mb()),
                "parameters": preset.parameters,
                "pytorch": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
