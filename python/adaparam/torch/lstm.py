"""The plain LSTM."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ._memory import is_transformed
from ._recurrent import Recurrent, lstm_bound, one_of_kind, uniform_
from ._shape import LstmShape

__all__ = ["LSTM"]


class LSTM(Recurrent):
    r"""``torch.nn.LSTM``, computed faster on the CPU.

    Arguments, parameters, their names and order, shapes and results are those of ``nn.LSTM``: a ``state_dict`` of one loads into the
    other, and ``LSTM.from_torch`` takes over a module.

    A window, forward and backward, is one operation each, on ``float32`` tensors of the CPU. Elsewhere, and with ``proj_size`` or with
    ``dropout`` together with ``dropout_hidden``, ordinary PyTorch computes.

    Args:
        input_size: ``I``, numbers of an input.
        hidden_size: ``H``, numbers of the hidden state; or a list, one for each layer.
        num_layers: ``L``.
        bias: whether layers have ``bias_ih`` and ``bias_hh``.
        batch_first: sequences are ``[B, T, I]`` instead of ``[T, B, I]``. The state is not affected.
        dropout: probability of dropping a number of what goes from a layer to the next, another draw at every step.
        bidirectional: layers read forward and backward, ``D = 2`` instead of 1.
        proj_size: ``P``, the size that hidden states are projected to; 0 for no projection.
        dropout_hidden: variational dropout: probability of dropping a number of the hidden state, the same ones at every step of a
            window. It also acts on what is carried to the next step; the output of the highest layer is not affected.
        skip: a layer that is as wide as its input adds it to what it gives; what it carries to the next step is not affected.
        execution: ``"auto"``, ``"fused"`` for an error where the kernels cannot compute, or ``"readable"`` for ordinary PyTorch.

    Shapes:
        - input: ``[T, B, I]``, ``[B, T, I]``, ``[T, I]`` for one sequence, or a ``PackedSequence``
        - ``h_0``, ``h_n``: ``[D L, B, P or H]``; ``c_0``, ``c_n``: ``[D L, B, H]``. Where layers have different sizes, lists of
          ``[1, B, H]``
        - output: ``[T, B, D (P or H)]``, or as the input

    Example:
        >>> lstm = LSTM(10, 20, num_layers=2)
        >>> output, (h_n, c_n) = lstm(torch.randn(5, 3, 10))
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | list[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype=None,
        *,
        dropout_hidden: float = 0.0,
        skip: bool = False,
        execution: str = "auto",
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            dropout_hidden,
            skip,
            execution,
        )
        self._register(device, dtype)

    @classmethod
    def from_torch(cls, lstm: nn.LSTM, **options) -> LSTM:
        """A module with the sizes of an ``nn.LSTM`` and a copy of its parameters; ``options`` are further arguments."""
        one_of_kind("from_torch", lstm, nn.LSTM, LSTM)
        if isinstance(lstm, LSTM):
            options = {"dropout_hidden": lstm.dropout_hidden, "skip": lstm.skip, "execution": lstm.execution, **options}
        weight = lstm.weight_ih_l0
        own = cls(
            lstm.input_size,
            lstm.hidden_size,
            lstm.num_layers,
            lstm.bias,
            lstm.batch_first,
            lstm.dropout,
            lstm.bidirectional,
            lstm.proj_size,
            weight.device,
            weight.dtype,
            **options,
        )
        own.load_state_dict(lstm.state_dict())
        return own.train(lstm.training)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Outputs, and the state after the last step.

        Args:
            input: the sequences; see the class.
            hx: ``(h_0, c_0)``; zeros without it.
            lengths: how many steps each row of a padded batch has, ``[B]``. Behind its end a row's outputs are zero, and its state is
                that after its last step.
        """
        return super().forward(input, hx, lengths)

    def reset_parameters(self) -> None:
        """Draws all parameters as ``nn.LSTM`` does, evenly between plus and minus ``1 / sqrt(H)``."""
        directions = 2 if self.bidirectional else 1
        for index, layer in enumerate(self.all_weights):
            uniform_(layer, lstm_bound(self.hidden_sizes[index // directions]))

    def _shape(self, input_size: int, hidden: tuple[int, ...]) -> LstmShape:
        return LstmShape(input_size, hidden, self.bias, self._between(), self.skip)

    def _layer_parameters(self, input_size: int, hidden: int) -> list[tuple[str, tuple[int, ...]]]:
        parameters = [("weight_ih", (4 * hidden, input_size)), ("weight_hh", (4 * hidden, self.proj_size or hidden))]
        if self.bias:
            parameters += [("bias_ih", (4 * hidden,)), ("bias_hh", (4 * hidden,))]
        if self.proj_size:
            parameters += [("weight_hr", (self.proj_size, hidden))]
        return parameters

    def _readable(self, index, x, weights, state, lengths, precision):
        sites = self.training and (self.dropout_hidden > 0 or self._between())
        steps = self.execution == "readable" or is_transformed()
        if steps or sites or lengths is not None or not self._is_uniform:
            return super()._readable(index, x, weights, state, lengths, precision)
        # PyTorch's own operation: on a GPU it is cuDNN's.
        flat = [weight for layer in weights for weight in layer]
        if state is None:
            rows, batch = len(weights), x.shape[1]
            state = [x.new_zeros(rows, batch, width) for width in self._state_widths(0)]
        output, h, c = torch._VF.lstm(x, state, flat, self.bias, len(weights), 0.0, self.training, False, False)
        return output, [h, c]
