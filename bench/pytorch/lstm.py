"""The plain LSTM that the adaptive one is compared with: PyTorch's own layers, with masks between them."""

from torch import nn

from alstm import variational_mask


class Lstm(nn.Module):
    """A stack of `nn.LSTM` layers. A mask on each layer's output, the same at all time steps, takes the place of its own dropout."""

    def __init__(self, d_input, d_hidden):
        super().__init__()
        self.d_hidden = list(d_hidden)
        self.layers = nn.ModuleList(nn.LSTM(d_below, d) for d_below, d in zip([d_input, *d_hidden], d_hidden))

    def zero_state(self, batch):
        like = self.layers[0].weight_ih_l0
        return [tuple(like.new_zeros(1, batch, d_hidden) for _ in "hc") for d_hidden in self.d_hidden]

    def draw_masks(self, batch, _drop_latent, drop_hidden):
        """One mask for each layer but the last, whose output the language model drops."""
        like = self.layers[0].weight_ih_l0
        return [variational_mask(like, (batch, d_hidden), drop_hidden) for d_hidden in self.d_hidden[:-1]] + [None]

    def forward(self, x, state, masks=None):
        """From `x` `[T, B, I]` to the last layer's h `[T, B, H]` and the final state."""
        new_state = []
        for layer, given, mask in zip(self.layers, state, masks or [None] * len(self.layers)):
            x, carried = layer(x, given)
            new_state.append(carried)
            if mask is not None:
                x = x * mask
        return x, new_state
