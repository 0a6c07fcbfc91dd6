"""The adaptive LSTM of section 3 of the paper, in ordinary PyTorch.

Recurrent policy, hybrid summary, IO adaptation with tied inputs. Shapes: T time, B batch, I input, H hidden,
A latent. Gates are in the order i, f, z, o.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class AdaptiveLstmLayer(nn.Module):
    """One layer: v = [x; h; z below], z = LSTM(v, z), pi = tanh(U z), and then eq. (8) and (5)."""

    def __init__(self, d_input, d_hidden, d_latent, d_latent_below, bias=True):
        super().__init__()
        self.latent = nn.LSTMCell(d_input + d_hidden + d_latent_below, d_latent)
        self.parts = [d_input, d_hidden, 4 * d_hidden, 4 * d_hidden] + [4 * d_hidden] * bias
        self.projection = nn.Parameter(torch.empty(sum(self.parts), d_latent))
        self.weight_ih = nn.Parameter(torch.empty(4 * d_hidden, d_input))
        self.weight_hh = nn.Parameter(torch.empty(4 * d_hidden, d_hidden))
        self.bias = nn.Parameter(torch.zeros(4 * d_hidden)) if bias else None
        for weight in (self.projection, self.weight_ih, self.weight_hh):
            nn.init.uniform_(weight, -1 / math.sqrt(weight.shape[1]), 1 / math.sqrt(weight.shape[1]))

    def step_latent(self, summary, z, z_cell):
        """`nn.LSTMCell`, which on a CPU has no primitive in mixed precision: there, the same by its equations."""
        if not torch.is_autocast_enabled("cpu"):
            return self.latent(summary, (z, z_cell))
        cell = self.latent
        u = F.linear(summary, cell.weight_ih, cell.bias_ih) + F.linear(z, cell.weight_hh, cell.bias_hh)  # [B, 4A]
        i, f, candidate, o = u.chunk(4, 1)
        z_cell = torch.sigmoid(f) * z_cell + torch.sigmoid(i) * torch.tanh(candidate)
        return torch.sigmoid(o) * torch.tanh(z_cell), z_cell

    def forward(self, x, z_below, state, masks):
        """One time step: the undropped h, and the new state, in which z and h are dropped."""
        (z, z_cell), (h, c) = state
        z_mask, h_mask = masks
        summary = torch.cat([x, h] if z_below is None else [x, h, z_below], 1)
        z, z_cell = self.step_latent(summary, z, z_cell)
        if z_mask is not None:
            z = z * z_mask
        d = torch.tanh(F.linear(z, self.projection)).split(self.parts, 1)
        u = d[2] * F.linear(d[0] * x, self.weight_ih) + d[3] * F.linear(d[1] * h, self.weight_hh)  # [B, 4H]
        if self.bias is not None:
            u = u + d[4] * self.bias
        i, f, candidate, o = u.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(candidate)
        output = torch.sigmoid(o) * torch.tanh(c)
        h = output if h_mask is None else output * h_mask
        return output, ((z, z_cell), (h, c))


class AdaptiveLstm(nn.Module):
    """A stack of adaptive layers; the first one's summary has the last one's latent of the step before, eq. (9)."""

    def __init__(self, d_input, d_hidden, d_latent, bias=True):
        super().__init__()
        d_latent_below = d_latent if len(d_hidden) > 1 else 0
        self.d_hidden, self.d_latent = list(d_hidden), d_latent
        self.layers = nn.ModuleList(
            AdaptiveLstmLayer(d_below, d, d_latent, d_latent_below, bias)
            for d_below, d in zip([d_input, *d_hidden], d_hidden)
        )

    def zero_state(self, batch):
        zeros = lambda width: tuple(self.layers[0].weight_ih.new_zeros(batch, width) for _ in "hc")
        return [(zeros(self.d_latent), zeros(d_hidden)) for d_hidden in self.d_hidden]

    def draw_masks(self, batch, drop_latent, drop_hidden):
        """The masks of z and h for each layer, the same at all time steps."""
        like = self.layers[0].weight_ih
        return [
            (variational_mask(like, (batch, self.d_latent), drop_latent), variational_mask(like, (batch, d_hidden), drop_hidden))
            for d_hidden in self.d_hidden
        ]

    def forward(self, x, state, masks=None):
        """From `x` `[T, B, I]` to the last layer's undropped h `[T, B, H]` and the final state."""
        masks = masks or [(None, None)] * len(self.layers)
        state, outputs = list(state), []
        for below in x.unbind(0):
            z_below = state[-1][0][0] if len(self.layers) > 1 else None
            for l, layer in enumerate(self.layers):
                output, state[l] = layer(below, z_below, state[l], masks[l])
                (z, _), (below, _) = state[l]
                if z_below is not None:
                    z_below = z
            outputs.append(output)
        return torch.stack(outputs), state


def variational_mask(like, shape, drop):
    """Zeros with probability `drop`, else 1 / (1 - drop); nothing if nothing is dropped."""
    if drop == 0:
        return None
    return like.new_empty(shape).bernoulli_(1 - drop).div_(1 - drop)
