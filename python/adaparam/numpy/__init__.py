"""Trained models of the command ``adaparam`` as NumPy arrays, without PyTorch.

    import adaparam.numpy as adaparam
    model = adaparam.load("runs/quick-seed-1")
    print(model.generate("call me", 50))
"""

from ._model import Model, load

__all__ = ["Model", "load"]
