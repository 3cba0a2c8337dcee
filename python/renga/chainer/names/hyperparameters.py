"""The default hyperparameters in Chainer's modules of optimizers."""

from __future__ import annotations

from importlib import import_module

from renga.core.optimizer import Hyperparameter
from renga.core.optimizer.fused_rule import default_hyperparam

_RULES = {
    "ada_delta": "AdaDeltaRule",
    "ada_grad": "AdaGradRule",
    "adam": "AdamRule",
    "corrected_momentum_sgd": "CorrectedMomentumSGDRule",
    "momentum_sgd": "MomentumSGDRule",
    "msvag": "MSVAGRule",
    "nesterov_ag": "NesterovAGRule",
    "rmsprop": "RMSpropRule",
    "rmsprop_graves": "RMSpropGravesRule",
    "sgd": "SGDRule",
    "smorms3": "SMORMS3Rule",
}


def default_of(module: str) -> Hyperparameter | None:
    """``_default_hyperparam`` of a module of ``chainer.optimizers``; None without."""
    rule = _RULES.get(module.removeprefix("chainer.optimizers."))
    if rule is None:
        return None
    return default_hyperparam(getattr(import_module(module), rule))
