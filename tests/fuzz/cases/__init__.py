"""All rows of the table."""

from ..table import CASES as CASES
from . import (  # noqa: F401
    arithmetic,
    array,
    connection,
    core,
    loss,
    math,
    normalization,
    pooling,
    rnn,
)

# Public names without a row, and why.
EXEMPT: dict[str, str] = {}
