"""Steps of data, tensor and pipeline parallelism on described machines."""

from renga.parallel.plan.scaling import (
    Job as Job,
    Layer as Layer,
    Step as Step,
    fitted as fitted,
    layers_of as layers_of,
    predict as predict,
    transformer as transformer,
)
from renga.parallel.plan.virtual_step import simulate as simulate
