"""One row for each function: all that the tests, the fuzzer and the timings know of it.

``python -m tests.catalogue erf`` runs what concerns one function.
"""

from . import (  # noqa: F401  which add their rows
    arithmetic,
    array,
    connection,
    loss,
    math,
    normalization,
    pooling,
    rnn,
)
from .row import CATALOGUE as CATALOGUE

# Each operation of the core has these cases.
CASES = {row.name: row.cases for row in CATALOGUE.values() if row.cases}
