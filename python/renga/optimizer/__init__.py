"""Optimizers update the parameters of a link by their gradients."""

from renga.optimizer.base import Optimizer as Optimizer
from renga.optimizer.fused_rule import FusedRule as FusedRule
from renga.optimizer.gradient_method import GradientMethod as GradientMethod
from renga.optimizer.hyperparameter import Hyperparameter as Hyperparameter
from renga.optimizer.hyperparameter import HyperparameterProxy as HyperparameterProxy
from renga.optimizer.update_rule import UpdateRule as UpdateRule
