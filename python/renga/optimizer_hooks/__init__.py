"""Hooks that change gradients or parameters around an update."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.optimizer_hooks.gradient_noise import GradientNoise as GradientNoise
from renga.optimizer_hooks.norm import (
    GradientClipping as GradientClipping,
    GradientHardClipping as GradientHardClipping,
    GradientLARS as GradientLARS,
)
from renga.optimizer_hooks.penalties import Lasso as Lasso, WeightDecay as WeightDecay

_suggest_names(__name__)
