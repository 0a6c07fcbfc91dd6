"""Compares the curves of a run, as TensorBoard's own package reads them, with the run's loss log.

    python3 with_tensorboard.py FOLDER_OF_CURVES RUN
"""

import glob
import json
import math
import os
import struct
import sys

from tensorboard.backend.event_processing import event_file_loader
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def expected(run):
    """What the loss log says: {tag: {step: value}}."""
    curves, updates = {}, 0
    with open(os.path.join(run, "metrics.jsonl")) as log:
        for line in map(json.loads, log):
            if "step" in line:
                updates += 1
                tags = {"loss": "train/loss", "norm": "train/gradient_norm", "learning_rate": "train/learning_rate"}
            else:
                tags = {f"{text}_{what}": f"{text}/{what}" for text in ("valid", "test") for what in ("loss", "perplexity")}
            for key, tag in tags.items():
                if key in line:
                    curves.setdefault(tag, {})[updates] = line[key]
    return curves


def main():
    folder, run = sys.argv[1:]
    files = sorted(glob.glob(os.path.join(folder, "*tfevents*")))
    # Record by record: sums, messages, no step twice in all files together.
    seen, records = set(), 0
    for file in files:
        for event in event_file_loader.LegacyEventFileLoader(file).Load():
            records += 1
            for value in event.summary.value:
                place = (value.tag, event.step)
                assert place not in seen, f"{place} is there twice"
                assert value.WhichOneof("value") == "simple_value", value
                seen.add(place)
    accumulator = EventAccumulator(folder, size_guidance={"scalars": 0})
    accumulator.Reload()
    tags, compared = accumulator.Tags()["scalars"], 0
    for tag, values in expected(run).items():
        shown = {event.step: event.value for event in accumulator.Scalars(tag)}
        assert sorted(shown) == sorted(values), f"{tag}: other steps than in the log"
        for step, value in values.items():
            assert abs(shown[step] - single(value)) <= 1e-6 * max(abs(value), 1e-2), (tag, step, shown[step], value)
            compared += 1
    losses = {event.step: event.value for event in accumulator.Scalars("train/loss")}
    for event in accumulator.Scalars("train/perplexity"):
        assert abs(event.value / math.exp(losses[event.step]) - 1) < 1e-5, event
    for event in accumulator.Scalars("train/words_per_second"):
        assert event.value > 0 and event.wall_time > 1.6e9, event
    policies = [tag for tag in tags if tag.startswith("policy_layer_")]
    assert any(tag.endswith("dead_latent_units") for tag in policies), tags
    assert any(tag.endswith("input_spread") for tag in policies), tags
    print(f"{len(files)} files, {records} records, {len(tags)} tags; {compared} values are those of the log")


main()
