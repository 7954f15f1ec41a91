"""How outcomes are modelled: inputs, units, fits, hyper-parameters."""

from botorch_drbo.surrogate.given_model import ModelMaker
from botorch_drbo.surrogate.hyperparameters import FixedHyperparameters

__all__ = ["FixedHyperparameters", "ModelMaker"]
