"""Layers for PyTorch: :class:`LSTM`, :class:`AdaptiveLSTM` and :class:`AdaptiveLinear`.

:class:`LanguageModel` is a trained run of the command.

They are ordinary modules. On ``float32`` tensors of the CPU a window is one operation, forward and backward, on the kernels of
adaparam; the number of threads is ``torch.get_num_threads()``. Elsewhere ordinary PyTorch computes the same (``readable``).
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise ImportError("adaparam.torch needs PyTorch: pip install torch (adaparam.numpy does without)") from _error

from .._native import free_memory
from .adaptive_linear import AdaptiveLinear
from .adaptive_lstm import AdaptiveLSTM, AdaptiveState
from .language_model import LanguageModel
from .lstm import LSTM

__all__ = ["LSTM", "AdaptiveLSTM", "AdaptiveLinear", "AdaptiveState", "LanguageModel", "free_memory"]
