"""What plain and adaptive stacks share: the conventions of ``nn.LSTM``, and the choice of what computes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from . import readable
from ._memory import Owner, is_transformed
from ._shape import Shape, description, site_names
from ._window import window

EXECUTIONS = ("auto", "fused", "readable")

# What the kernels do not know of derivatives.
TRANSFORMS = "transformations of torch.func and derivatives in forward mode"

# What is carried from step to step, as callers give it: hidden and cell state, and those of a policy.
KINDS = ("h_0", "c_0", "z_0", "z_cell_0")


def one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    """The value, if it is one of those that are allowed."""
    if value not in allowed:
        rule = ", ".join(repr(one) for one in allowed[:-1]) + f" or {allowed[-1]!r}"
        raise ValueError(f"{name} = {value!r}: must be {rule}")
    return value


def probability(name: str, value: float) -> float:
    """The value, if it is a probability."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{name} = {value!r}: must be a number from 0 to 1, the probability of dropping a number")
    return float(value)


def _full_name(kind: type) -> str:
    """As people import it: ``torch.nn.LSTM``."""
    if kind.__module__.startswith(("torch.nn.modules.", "adaparam.torch.")):
        return f"{kind.__module__.replace('.modules', '').rsplit('.', 1)[0]}.{kind.__name__}"
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def one_of_kind(name: str, given, *kinds: type) -> None:
    """Refuses a module of another kind than those that can be taken over."""
    if not isinstance(given, kinds):
        got = f"the class {given.__name__}" if isinstance(given, type) else f"a {_full_name(type(given))}"
        wanted = " or ".join(_full_name(kind) for kind in kinds)
        raise TypeError(f"{name}: got {got}, must be a {wanted}")


def positive(name: str, value: int) -> int:
    """The value, if it is a size."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} = {value!r}: must be a whole number")
    if value < 1:
        raise ValueError(f"{name} = {value}: must be at least 1")
    return value


class Recurrent(nn.Module):
    """A stack of recurrent layers with the conventions of ``nn.LSTM``."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        proj_size: int,
        dropout_hidden: float,
        skip: bool,
        execution: str,
    ) -> None:
        super().__init__()
        self.input_size = positive("input_size", input_size)
        self.num_layers = positive("num_layers", num_layers)
        if not isinstance(hidden_size, (list, tuple)):
            self.hidden_sizes = (positive("hidden_size", hidden_size),) * num_layers
        else:
            self.hidden_sizes = tuple(positive("hidden_size", size) for size in hidden_size)
            if len(self.hidden_sizes) != num_layers:
                raise ValueError(
                    f"hidden_size = {list(hidden_size)}: has {len(self.hidden_sizes)} sizes, must have num_layers = {num_layers}"
                )
        self._is_uniform = len(set(self.hidden_sizes)) == 1
        self.hidden_size = self.hidden_sizes[0] if self._is_uniform else list(self.hidden_sizes)
        self.bias = bool(bias)
        self.batch_first = bool(batch_first)
        self.skip = bool(skip)
        self._stacks: list = []
        self.dropout = dropout
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"dropout = {dropout} acts between layers, and there is one layer; give num_layers > 1, or dropout_hidden",
                stacklevel=3,
            )
        self.bidirectional = bool(bidirectional)
        # 0 is for no projection.
        self.proj_size = proj_size and positive("proj_size", proj_size)
        if proj_size >= min(self.hidden_sizes):
            raise ValueError(f"proj_size = {proj_size}: must be smaller than hidden_size = {hidden_size}")
        self.dropout_hidden = probability("dropout_hidden", dropout_hidden)
        if not self._is_uniform and (bidirectional or proj_size):
            raise ValueError("layers of different hidden_size go with neither bidirectional nor proj_size")
        if skip and (bidirectional or proj_size):
            raise ValueError("skip = True: goes with neither bidirectional nor proj_size")
        self.execution = one_of("execution", execution, EXECUTIONS)
        self._owner = Owner()

    @property
    def dropout(self) -> float:
        """Probability of dropping a number between layers. It may be set to another one at any time, as that of ``nn.LSTM``."""
        return self._dropout

    @dropout.setter
    def dropout(self, value: float) -> None:
        value = probability("dropout", value)
        if value and self.skip and self.num_layers > 1:
            raise ValueError(f"dropout = {value}: does not go with skip = True; choose dropout_hidden")
        self._dropout = value
        if self._stacks:
            self._set_stacks()

    # What the two kinds of stack say about themselves.

    def _shape(self, input_size: int, hidden: tuple[int, ...]) -> Shape:
        raise NotImplementedError

    def _layer_parameters(self, input_size: int, hidden: int) -> list[tuple[str, tuple[int, ...]]]:
        raise NotImplementedError

    def _kernels_lack(self) -> str | None:
        """Why the kernels cannot compute this module, if so."""
        if self.proj_size:
            return "proj_size"
        if self._between() and self.dropout_hidden:
            return "dropout together with dropout_hidden"
        if is_transformed():
            return TRANSFORMS
        return None

    def _between(self) -> bool:
        """Whether dropout between layers is within a stack. Layers of two directions are stacks of their own."""
        return self.dropout > 0 and self.num_layers > 1 and not self.bidirectional

    # Parameters.

    def _suffixes(self) -> list[str]:
        directions = ["", "_reverse"] if self.bidirectional else [""]
        return [f"_l{layer}{direction}" for layer in range(self.num_layers) for direction in directions]

    def _input_of(self, layer: int) -> int:
        if layer == 0:
            return self.input_size
        below = self.proj_size or self.hidden_sizes[layer - 1]
        return below * (2 if self.bidirectional else 1)

    def _register(self, device, dtype) -> None:
        directions = 2 if self.bidirectional else 1
        self._names: list[list[str]] = []
        for index, suffix in enumerate(self._suffixes()):
            layer = index // directions
            parameters = self._layer_parameters(self._input_of(layer), self.hidden_sizes[layer])
            for name, shape in parameters:
                empty = torch.empty(shape, device=device, dtype=dtype)
                self.register_parameter(name + suffix, nn.Parameter(empty))
            self._names.append([name + suffix for name, _ in parameters])
        self._kinds = len(self._state_widths(0))
        self._plain = [[name.rsplit("_l", 1)[0] for name in names] for names in self._names]
        self._set_stacks()
        self.reset_parameters()

    def _set_stacks(self) -> None:
        """The stacks that windows are cut into: one for all layers, or one for each layer and direction."""
        if self.bidirectional:
            layers = range(self.num_layers)
            shapes = [self._shape(self._input_of(layer), (self.hidden_sizes[layer],)) for layer in layers for _ in "->"]
            self._stacks = [(shape, [index]) for index, shape in enumerate(shapes)]
        else:
            shape = self._shape(self.input_size, self.hidden_sizes)
            self._stacks = [(shape, list(range(self.num_layers)))]
        self._texts = [description(shape) for shape, _ in self._stacks]
        self._sites = [site_names(text) for text in self._texts]

    @property
    def all_weights(self) -> list[list[nn.Parameter]]:
        """The parameters of each layer and direction."""
        # Past `nn.Module.__getattr__`, which takes longer than a step of a small layer. What is not here, as a parametrization, is
        # an attribute.
        own = self._parameters
        return [[own[name] if name in own else getattr(self, name) for name in names] for names in self._names]

    def flatten_parameters(self) -> None:
        """Does nothing; ``nn.LSTM`` has it for CUDA."""

    def reset_parameters(self) -> None:
        """Draws all parameters anew."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        parts = [str(self.input_size), str(self.hidden_size)]
        for name, default in self._shown().items():
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value!r}")
        return ", ".join(parts)

    def _shown(self) -> dict:
        return {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
            "proj_size": 0,
            "dropout_hidden": 0.0,
            "skip": False,
            "execution": "auto",
        }

    # What the state is.

    def _state_widths(self, layer: int) -> list[int]:
        """Of each kind of state of a layer."""
        return [self.proj_size or self.hidden_sizes[layer], self.hidden_sizes[layer]]

    def _state_counts(self) -> tuple[int, ...]:
        """How many kinds of state a caller may give."""
        return (self._kinds,)

    # A call.

    def forward(self, input, hx=None, lengths=None):
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx, lengths)
        return self._forward_padded(input, hx, lengths)

    def _forward_packed(self, packed: PackedSequence, hx, lengths):
        if lengths is not None:
            raise ValueError("lengths: a PackedSequence has its own; leave lengths away")
        padded, lengths = pad_packed_sequence(PackedSequence(packed.data, packed.batch_sizes))
        self._check_width(padded)
        order = packed.sorted_indices
        state = self._state_in(hx, padded.shape[1], padded, order, batched=True)
        output, state = self._run(padded, state, lengths)
        output = pack_padded_sequence(output, lengths)
        output = PackedSequence(output.data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        return output, self._state_out(state, packed.unsorted_indices, batched=True)

    def _forward_padded(self, input: Tensor, hx, lengths):
        if not isinstance(input, Tensor):
            raise TypeError(f"input: is a {type(input).__name__}, must be a Tensor or a PackedSequence")
        if input.dim() not in (2, 3):
            raise ValueError(
                f"input: has shape {list(input.shape)}, must be [T, I] for one sequence or "
                f"{'[B, T, I]' if self.batch_first else '[T, B, I]'}"
            )
        self._check_width(input)
        batched = input.dim() == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        steps, batch = x.shape[0], x.shape[1]
        if steps == 0:
            raise ValueError(f"input: has shape {list(input.shape)}, a sequence of no steps; must have at least 1")
        if batch == 0:
            raise ValueError(f"input: has shape {list(input.shape)}, a batch of no rows; must have at least 1")
        if lengths is not None:
            lengths = self._check_lengths(lengths, steps, batch)
        state = self._state_in(hx, batch, x, None, batched)
        output, state = self._run(x, state, lengths)
        if not batched:
            output = output.squeeze(1)
        elif self.batch_first:
            output = output.transpose(0, 1)
        return output, self._state_out(state, None, batched)

    def _check_width(self, input: Tensor) -> None:
        if input.shape[-1] != self.input_size:
            raise ValueError(
                f"input: has shape {list(input.shape)}, its last size must be input_size = {self.input_size}"
            )

    def _check_lengths(self, lengths, steps: int, batch: int) -> Tensor:
        lengths = torch.as_tensor(lengths)
        if lengths.shape != (batch,):
            raise ValueError(f"lengths: has shape {list(lengths.shape)}, must be [{batch}], one for each row")
        if lengths.is_floating_point():
            raise TypeError(f"lengths: has dtype {lengths.dtype}, must be whole numbers")
        lengths = lengths.to("cpu", torch.int64)
        if not torch.compiler.is_compiling():
            shortest, longest = int(lengths.min()), int(lengths.max())
            if shortest < 1 or longest > steps:
                wrong = shortest if shortest < 1 else longest
                raise ValueError(f"lengths: a row has {wrong} steps, must have from 1 to {steps}")
        return lengths

    def _state_in(self, hx, batch: int, x: Tensor, order: Tensor | None, batched: bool) -> list | None:
        """The initial state by kinds, each a tensor of all layers; or a list of one a layer where they differ in size."""
        if hx is None:
            return None
        if isinstance(hx, Tensor) or len(hx) not in self._state_counts():
            got = "a Tensor" if isinstance(hx, Tensor) else f"{len(hx)} parts"
            raise ValueError(f"hx: is {got}, must be ({', '.join(KINDS[: self._kinds])})")
        widths = self._state_widths(0)
        parts = []
        rows = self.num_layers * (2 if self.bidirectional else 1)
        for kind, (name, part) in enumerate(zip(KINDS, hx)):
            if self._is_uniform:
                width = widths[kind]
                must = (rows, batch, width) if batched else (rows, width)
                self._check_state(name, part, must, x)
                part = part if batched else part.unsqueeze(1)
                part = part if order is None else part.index_select(1, order)
            else:
                each = list(part)
                if len(each) != rows:
                    raise ValueError(f"{name}: has {len(each)} parts, must have {rows}, one for each layer")
                for layer, one in enumerate(each):
                    width = self._state_widths(layer)[kind]
                    self._check_state(f"{name}[{layer}]", one, (1, batch, width) if batched else (1, width), x)
                each = [one if batched else one.unsqueeze(1) for one in each]
                part = [one if order is None else one.index_select(1, order) for one in each]
            parts.append(part)
        for kind in range(len(parts), self._kinds):
            if self._is_uniform:
                parts.append(x.new_zeros(rows, batch, widths[kind]))
            else:
                each = range(self.num_layers)
                parts.append([x.new_zeros(1, batch, self._state_widths(layer)[kind]) for layer in each])
        return parts

    def _check_state(self, name: str, part, must: tuple[int, ...], x: Tensor) -> None:
        if not isinstance(part, Tensor):
            raise TypeError(f"{name}: is a {type(part).__name__}, must be a Tensor")
        if part.shape != must:
            raise ValueError(f"{name}: has shape {list(part.shape)}, must be {list(must)}")
        if part.device != x.device:
            raise ValueError(f"{name}: is on {part.device}, must be on {x.device}, as the input is")

    def _state_out(self, parts: list, order: Tensor | None, batched: bool):
        if order is None and batched:
            return self._state_type(parts)

        def finished(part: Tensor) -> Tensor:
            part = part if order is None else part.index_select(1, order)
            return part if batched else part.squeeze(1)

        return self._state_type([finished(p) if isinstance(p, Tensor) else [finished(one) for one in p] for p in parts])

    def _state_type(self, parts: list):
        return tuple(parts)

    # What computes.

    def _run(self, x: Tensor, state: list | None, lengths: Tensor | None) -> tuple[Tensor, list]:
        """From ``[T, B, I]`` to outputs, and the final state by kinds."""
        weights = self.all_weights
        first = weights[0][0]
        if x.device != first.device:
            raise ValueError(f"input: is on {x.device}, must be on {first.device}, as the weights are")
        precision = "float32"
        dtype = first.dtype
        device = x.device.type
        casts = (device == "cpu" or torch.amp.is_autocast_available(device)) and torch.is_autocast_enabled(device)
        if casts:
            if device == "cpu" and torch.get_autocast_dtype("cpu") is torch.bfloat16:
                precision = "bfloat16"
            x = x.to(dtype)
        elif x.dtype is not dtype:
            raise TypeError(f"input: has dtype {x.dtype}, must be {dtype}, as the weights are")
        if state is not None:
            state = [[_cast(one, dtype) for one in p] if isinstance(p, list) else _cast(p, dtype) for p in state]
        lack = self._kernels_lack()
        fused = self.execution != "readable" and device == "cpu" and dtype is torch.float32 and lack is None
        if self.execution == "fused" and not fused:
            lack = lack or f"{dtype} on {x.device}"
            raise RuntimeError(
                f"execution = 'fused': the kernels do not know {lack}; choose execution = 'auto' for the readable version there"
            )
        if casts:
            with torch.autocast(device, enabled=False):
                return self._compute(x, weights, state, lengths, fused, precision)
        return self._compute(x, weights, state, lengths, fused, precision)

    def _compute(self, x, weights, state, lengths, fused, precision):
        if self.bidirectional:
            return self._both_directions(x, weights, state, lengths, fused, precision)
        stack = self._fused if fused else self._readable
        return stack(0, x, weights, state, lengths, precision)

    def _both_directions(self, x, weights, state, lengths, fused, precision):
        stack = self._fused if fused else self._readable
        turned = _Turned(x, lengths)
        finals: list[list[Tensor]] = [[] for _ in range(self._kinds)]
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(2):
                index = 2 * layer + direction
                own = None if state is None else [part[index : index + 1] for part in state]
                given = turned(x) if direction else x
                output, final = stack(index, given, [weights[index]], own, lengths, precision)
                outputs.append(turned(output) if direction else output)
                for kind, part in zip(finals, final):
                    kind.append(part)
            x = torch.cat(outputs, -1)
            if layer + 1 < self.num_layers and self.training and self.dropout:
                x = F.dropout(x, self.dropout)
        return x, [torch.cat(kind) for kind in finals]

    def _masks(self, index: int, x: Tensor) -> dict[str, Tensor]:
        """The masks of a window of a stack, by site; none where nothing is dropped."""
        if not self.training:
            return {}
        shape, _ = self._stacks[index]
        steps, batch = x.shape[0], x.shape[1]
        masks = {}
        for layer, hidden in enumerate(shape.hidden):
            if self.dropout_hidden:
                masks[f"layers.{layer}.hidden"] = _mask(x, (batch, self.proj_size or hidden), self.dropout_hidden)
            if layer and shape.between:
                below = self.proj_size or shape.hidden[layer - 1]
                masks[f"layers.{layer}.inter_layer"] = _mask(x, (steps, batch, below), self.dropout)
        return masks

    def _fused(self, index, x, weights, state, lengths, precision):
        shape, _ = self._stacks[index]
        masks = self._masks(index, x)
        names = self._sites[index]
        sites = [site for site, name in enumerate(names) if name in masks] if masks else []
        given = [masks[names[site]] for site in sites]
        flat = weights[0] if len(weights) == 1 else [weight for layer in weights for weight in layer]
        carried = [] if state is None else [p if isinstance(p, Tensor) else _flat(p) for p in state]
        keep = torch.is_grad_enabled() and any(t.requires_grad for t in (x, *flat, *carried))
        output, finals = window(x, flat, carried, given, sites, lengths, self._texts[index], precision, self._owner.id, keep)
        if not self._is_uniform:
            # One after the other, those of all layers.
            batch, layers = x.shape[1], range(len(shape.hidden))
            widths = [[batch * self._state_widths(layer)[kind] for layer in layers] for kind in range(self._kinds)]
            finals = [[p.view(1, batch, -1) for p in final.split(own)] for final, own in zip(finals, widths)]
        return output, finals

    def _readable(self, index, x, weights, state, lengths, _precision):
        shape, own = self._stacks[index]
        named = [dict(zip(self._plain[number], layer)) for number, layer in zip(own, weights)]
        layers = len(shape.hidden)
        batch = x.shape[1]
        kinds = range(self._kinds)
        if state is None:
            initial = [[x.new_zeros(batch, width) for width in self._state_widths(layer)] for layer in range(layers)]
        else:
            initial = [[_layer_of(state[kind], layer) for kind in kinds] for layer in range(layers)]
        output, final = readable.unroll(shape, x, named, initial, self._masks(index, x), lengths)
        if self._is_uniform:
            finals: list = [torch.stack([parts[kind] for parts in final]) for kind in kinds]
        else:
            finals = [[parts[kind].unsqueeze(0) for parts in final] for kind in kinds]
        return output, finals


def _cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor if tensor.dtype is dtype else tensor.to(dtype)


def _layer_of(part, layer: int) -> Tensor:
    return part[layer] if isinstance(part, Tensor) else part[layer].squeeze(0)


def _flat(parts: list[Tensor]) -> Tensor:
    return torch.cat([part.reshape(-1) for part in parts])


def _mask(x: Tensor, shape: tuple[int, ...], drop: float) -> Tensor:
    """Zeros with probability ``drop``, else ``1 / (1 - drop)``."""
    return F.dropout(x.new_ones(shape), drop)


class _Turned:
    """Turns sequences round, each row within its own length."""

    def __init__(self, x: Tensor, lengths: Tensor | None) -> None:
        self.places = None
        if lengths is not None:
            step = torch.arange(x.shape[0], device=x.device)[:, None]
            lengths = lengths.to(x.device)
            self.places = torch.where(step < lengths, lengths - 1 - step, step)  # [T, B]

    def __call__(self, x: Tensor) -> Tensor:
        if self.places is None:
            return x.flip(0)
        return x.gather(0, self.places[..., None].expand_as(x))


def uniform_(parameters, bound: float) -> None:
    """Draws parameters evenly between plus and minus ``bound``."""
    for parameter in parameters:
        nn.init.uniform_(parameter, -bound, bound)


def lstm_bound(hidden_size: int) -> float:
    """What ``nn.LSTM`` draws its weights within."""
    return 1 / math.sqrt(hidden_size)
