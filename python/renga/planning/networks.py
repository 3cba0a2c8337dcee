"""The six networks of the FlexFlow paper, as graphs at full size."""

from renga.parallel.plan.networks import *  # noqa: F403
from renga.parallel.plan.networks import __all__ as __all__
