"""One row for each function, link and optimizer: all that the tests know of it.

The fuzzer and the timings read the rows, too. ``python -m tests.catalogue erf`` runs
what concerns one function, link or optimizer.
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
from .links import LINKS as LINKS
from .optimizers import OPTIMIZERS as OPTIMIZERS
from .row import CATALOGUE as CATALOGUE

# Each operation of the core has these cases.
CASES = {row.name: row.cases for row in CATALOGUE.values() if row.cases}
