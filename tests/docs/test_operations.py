"""The pages of operations say what the core lists and its headers declare."""

import inspect
import runpy
from pathlib import Path

from renga import _core

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_up_to_date():
    script = runpy.run_path(str(DOCS / "scripts/make_operations.py"))
    page = (DOCS / "operations.md").read_text()
    assert page == script["reference"](), "run `make docs`"


def test_the_page_of_cpp_functions_is_up_to_date():
    script = runpy.run_path(str(DOCS / "scripts/make_cpp_operations.py"))
    page = (DOCS / "cpp/operations.md").read_text()
    assert page == script["reference"](), "run `make docs`"


def test_cpp_functions_have_the_defaults_of_the_lists():
    script = runpy.run_path(str(DOCS / "scripts/make_cpp_operations.py"))
    functions = script["functions"]()
    for op in _core.ops.entries:
        bound = inspect.signature(getattr(_core.ops, op.name)).parameters.values()
        expected = sum(p.default is not p.empty for p in bound)
        counts = [f.declaration.count(" = ") for f in functions[op.name]]
        assert expected in counts, op.name
