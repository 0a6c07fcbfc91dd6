"""Compares the curves of a run, as TensorBoard's own package reads them, with the run's loss log, and with what was told
while it trained.

    python3 with_tensorboard.py FOLDER_OF_CURVES RUN [EVENTS…]

EVENTS are what `train --json` and then `resume --json` printed: they alone have the speed and the policies.
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


def told(files):
    """What was printed while it trained: {tag: {step: value}}. A run that goes on tells some steps again, and these count."""
    curves, updates = {}, 0

    def tell(tag, value):
        curves.setdefault(tag, {})[updates] = value

    for file in files:
        with open(file) as events:
            lines = events.read().split("\n")[:-1]  # the last one may be cut
        for event in map(json.loads, lines):
            if event["event"] == "begun":
                updates = event["updates"]
                for values in curves.values():
                    for step in [step for step in values if step > updates]:
                        del values[step]
            elif event["event"] == "step":
                updates += 1
                tell("train/words_per_second", event["words"] / max(event["seconds"], 1e-9))
            elif event["event"] == "looked":
                for layer in event["layers"]:
                    place = f"policy_layer_{layer['layer']}"
                    tell(f"{place}/dead_latent_units", layer["dead_latent_units"])
                    for policy in layer["policies"]:
                        tell(f"{place}/{policy['name']}_mean", policy["mean"])
                        tell(f"{place}/{policy['name']}_spread", policy["spread"])
    return curves


def main():
    folder, run, *events = sys.argv[1:]
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
    of_log = expected(run)
    of_events = told(events)
    for tag, values in [*of_log.items(), *of_events.items()]:
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
    policies = {tag for tag in tags if tag.startswith("policy_layer_")}
    assert any(tag.endswith("dead_latent_units") for tag in policies), tags
    assert any(tag.endswith("input_spread") for tag in policies), tags
    assert not events or policies < set(of_events), policies - set(of_events)
    # After every hundredth update.
    steps = [step for step in sorted(of_log["train/loss"]) if step % 100 == 0]
    for tag in policies:
        values = accumulator.Scalars(tag)
        assert [event.step for event in values] == steps, tag
        assert all(abs(event.value) <= 1 for event in values), tag
    print(f"{len(files)} files, {records} records, {len(tags)} tags; {compared} values are those of the log and of what was told")


main()
