# %% [markdown]
# # A model of characters that adapts its weights
#
# An adaptive LSTM learns to predict the next character of a text, and then shows how it adapts its weights to what it reads.
# Needs `pip install adaparam torch`, and matplotlib for the picture. Two minutes on two cores.

# %%
import sys
from pathlib import Path

import torch
from torch import nn

from adaparam.torch import AdaptiveLinear, AdaptiveLSTM

torch.manual_seed(1)

# %% [markdown]
# Any text will do: the first argument, or this script itself.

# %%
source = Path(sys.argv[1]) if len(sys.argv) > 1 and Path(sys.argv[1]).is_file() else Path(__file__)
text = source.read_text("utf-8")
letters = sorted(set(text))
ids = torch.tensor([letters.index(letter) for letter in text])
print(f"{source.name}: {len(text)} characters, {len(letters)} different ones")


# %%
class Model(nn.Module):
    """`p(character | characters before)`."""

    def __init__(self, letters: int, width: int = 64, latent: int = 16) -> None:
        super().__init__()
        self.vectors = nn.Embedding(letters, width)
        self.layers = AdaptiveLSTM(width, width, latent, num_layers=2, policy_start="identity", dropout_hidden=0.1)
        self.scores = AdaptiveLinear.from_linear(nn.Linear(width, letters), adaptation="output")

    def forward(self, ids, state=None):
        output, state = self.layers(self.vectors(ids), state)
        return self.scores(output), state


# %% [markdown]
# Columns of the text are read side by side, in windows of 32 characters; the state goes from window to window.

# %%
BATCH, STEPS, PASSES = 16, 32, 30
rows = max(2, len(ids) // BATCH)
columns = ids[: rows * BATCH].reshape(BATCH, rows).T  # [T, B]
model = Model(len(letters))
optimiser = torch.optim.Adam(model.parameters(), 3e-3)
first = last = None
for epoch in range(PASSES):
    state, losses = None, []
    for start in range(0, len(columns) - 1, STEPS):
        given, targets = columns[start:-1][:STEPS], columns[start + 1 :][:STEPS]
        scores, state = model(given, state)
        state = tuple(part.detach() for part in state)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    last = sum(losses) / len(losses)
    first = first or last
    if epoch % 5 == 4:
        print(f"pass {epoch + 1}: {last / 0.6931:.2f} bits a character")
assert last < first, "it has learned something"

# %% [markdown]
# A line of its own: each character is drawn from the scores.

# %%
model.eval()
with torch.no_grad():
    drawn, state = [ids[0]], None
    for _ in range(120):
        scores, state = model(drawn[-1].reshape(1, 1), state)
        drawn.append(torch.multinomial(scores[0, 0].softmax(0), 1)[0])
print("".join(letters[id] for id in drawn))

# %% [markdown]
# How the weights were adapted: the factors of the first layer's inputs, character by character. One is a weight as it is.

# %%
shown = ids[:80]
policies = model.layers.policies(model.vectors(shown)[:, None])
factors = policies[0]["input"][:, 0]  # [T, width]
print(f"factors of the first layer's inputs: from {factors.min():.2f} to {factors.max():.2f}")
try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    print("no picture: pip install matplotlib")
else:
    figure, axes = plt.subplots(figsize=(14, 5), layout="constrained")
    picture = axes.imshow(factors.T, aspect="auto", cmap="coolwarm", vmin=0, vmax=2)
    axes.set_xticks(range(len(shown)), [letters[id] if letters[id].isprintable() else "·" for id in shown])
    axes.set(ylabel="input of the first layer", title="Factors of the weights, character by character")
    figure.colorbar(picture)
    figure.savefig("adaptation.png", dpi=120)
    print("adaptation.png")
