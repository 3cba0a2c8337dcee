"""Every link with a reference in NumPy: values, dtypes, gradients, files, copies."""

import pytest

from tests.catalogue import LINKS
from tests.links.cases.link_check import check

CASES = {
    f"{row.name} {label}".strip(): case
    for row in LINKS.values()
    for label, case in row.cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_link(name):
    check(CASES[name])
