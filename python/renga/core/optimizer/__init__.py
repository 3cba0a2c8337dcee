"""Optimizers update the parameters of a link by their gradients."""

from renga.core.optimizer.base import Optimizer as Optimizer
from renga.core.optimizer.fused_rule import FusedRule as FusedRule
from renga.core.optimizer.gradient_method import (
    DEFAULT as DEFAULT,
    GradientMethod as GradientMethod,
    with_hyperparameters as with_hyperparameters,
)
from renga.core.optimizer.hyperparameter import (
    Hyperparameter as Hyperparameter,
    HyperparameterProxy as HyperparameterProxy,
)
from renga.core.optimizer.update_rule import UpdateRule as UpdateRule
