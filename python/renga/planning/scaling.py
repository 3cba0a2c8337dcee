"""Steps of data, tensor and pipeline parallelism on described machines."""

from renga.parallel.plan.scaling import (
    Job,
    Layer,
    Step,
    fitted,
    layers_of,
    predict,
    transformer,
)
from renga.parallel.plan.virtual_step import simulate

__all__ = [
    "Job",
    "Layer",
    "Step",
    "fitted",
    "layers_of",
    "predict",
    "simulate",
    "transformer",
]
