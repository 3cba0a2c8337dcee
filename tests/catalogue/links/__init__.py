"""One row for each link: all that the tests know of it."""

from . import (  # noqa: F401  which add their rows
    activation,
    attention,
    connection,
    convolution,
    loss,
    model,
    n_step_rnn,
    normalization,
    parallel,
    rnn,
)
from .row import LINKS as LINKS
