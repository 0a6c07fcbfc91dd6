"""Adaptive parameterization for Python: fast layers for PyTorch users on the CPU, and trained models for everybody.

- :mod:`adaparam.torch`: ``LSTM``, ``AdaptiveLSTM`` and ``AdaptiveLinear``, modules in place of PyTorch's own.
- :mod:`adaparam.numpy`: trained runs of the command ``adaparam``, without PyTorch.

Nothing is imported until it is asked for, so that PyTorch is needed by ``adaparam.torch`` alone.
"""

from importlib import metadata as _metadata

try:
    __version__ = _metadata.version("adaparam")
except _metadata.PackageNotFoundError:  # A copy of the sources that was never installed.
    __version__ = "0.0.0"

__all__ = ["__version__"]
