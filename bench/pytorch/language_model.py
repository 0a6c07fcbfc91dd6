"""A language model around a recurrent stack: tied embedding and softmax, variational dropout, Adam."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from alstm import variational_mask


@dataclass(frozen=True)
class Dropout:
    """Rates of the variational dropout. The defaults are those of the paper's PTB model."""

    words: float = 0.16
    embedding: float = 0.6
    latent: float = 0.1
    hidden: float = 0.25
    output: float = 0.6


class LanguageModel(nn.Module):
    """Words to logits. `recurrent` is an `AdaptiveLstm` or an `Lstm` whose last layer is as wide as the embedding."""

    def __init__(self, vocabulary, d_embedding, recurrent, dropout=Dropout()):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(vocabulary, d_embedding).uniform_(-0.1, 0.1))
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.recurrent = recurrent
        self.dropout = dropout

    def forward(self, words, state):
        """From `words` `[T, B]` to logits `[T, B, vocabulary]` and the final state. Drops only while training."""
        batch, masks, drop = words.shape[1], None, self.dropout
        x = F.embedding(words, self.embedding)  # [T, B, I]
        if self.training:
            of_words = variational_mask(self.embedding, (len(self.embedding), 1), drop.words)
            if of_words is not None:
                x = x * F.embedding(words, of_words)
            x = self.drop(x, drop.embedding)
            masks = self.recurrent.draw_masks(batch, drop.latent, drop.hidden)
        output, state = self.recurrent(x, state, masks)
        if self.training:
            output = self.drop(output, drop.output)
        return F.linear(output, self.embedding, self.bias), state

    @staticmethod
    def drop(sequence, rate):
        mask = variational_mask(sequence, sequence.shape[1:], rate)
        return sequence if mask is None else sequence * mask

    def loss(self, words, targets, state):
        """Mean cross-entropy over all positions, and the final state."""
        logits, state = self(words, state)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten()), state


def optimiser_of(model, learning_rate=0.003):
    """Adam as in the paper. The fused form is the fastest that PyTorch has."""
    return torch.optim.Adam(
        model.parameters(), lr=learning_rate, betas=(0.0, 0.999), eps=1e-9, weight_decay=1e-6, fused=True
    )


def training_step(model, optimiser, words, targets, state, clip=None):
    """One window of truncated back-propagation through time: the loss and the state to carry on with."""
    loss, state = model.loss(words, targets, state)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    if clip is not None:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimiser.step()
    return loss.detach(), detached(state)


def detached(state):
    """The same state, cut off from the graph that made it."""
    if isinstance(state, torch.Tensor):
        return state.detach()
    return type(state)(detached(part) for part in state)
