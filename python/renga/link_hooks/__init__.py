"""Hooks that run around the calls of links."""

from renga.link_hooks.lora import LoRA as LoRA
from renga.link_hooks.timer import TimerHook as TimerHook
from renga.link_hooks.weight_hook import (
    SpectralNormalization as SpectralNormalization,
    WeightStandardization as WeightStandardization,
)
