"""Steps of data, tensor and pipeline parallelism on described machines."""

from renga.parallel.plan.sample_layers import (
    Layer as Layer,
    layers_of as layers_of,
    transformer as transformer,
)
from renga.parallel.plan.scaling import (
    Job as Job,
    Step as Step,
    fitted as fitted,
    predict as predict,
)
from renga.parallel.plan.virtual_step import simulate as simulate
