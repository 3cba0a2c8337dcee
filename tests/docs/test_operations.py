"""The page of operations says what the core lists."""

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_up_to_date():
    script = runpy.run_path(str(DOCS / "scripts/make_operations.py"))
    page = (DOCS / "operations.md").read_text()
    assert page == script["reference"](), "run `make docs`"
