"""All rows of the table."""

from . import (  # noqa: F401
    cases_arithmetic,
    cases_array,
    cases_connection,
    cases_core,
    cases_loss,
    cases_math,
    cases_normalization,
    cases_pooling,
    cases_rnn,
)
from .table import CASES as CASES

# Public names without a row, and why.
EXEMPT: dict[str, str] = {}
