"""What `import renga` loads, and what it leaves for the first use."""

import ast
import importlib
import pathlib
import subprocess
import sys

import pytest

import renga

# Packages that a serial training script does not use.
LATER = ("communicators", "datasets", "distributed", "distributions", "exporters")
LATER += ("extensions", "links.parallel", "links.model.vision", "parallel")
LATER += ("pipeline", "planning", "profiling", "program", "testing")
# Modules of the standard library that only such packages import.
LATER_STANDARD = ("asyncio", "email", "hashlib", "multiprocessing", "tarfile")
# Modules of renga, some under two names; fewer are better.
MOST_MODULES = 460


def test_import_loads_what_serial_training_needs():
    program = "import sys, renga; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True)
    modules = set(loaded.stdout.split())
    own = {each for each in modules if each.partition(".")[0] == "renga"}
    assert len(own) <= MOST_MODULES
    later = {f"renga.{name}" for name in LATER} | {*LATER_STANDARD}
    assert not modules & later
    assert {"renga.core.link", "renga.links", "renga.functions"} <= own


def at_first_use(path):
    """(names that type checkers import, names of the table) of a module."""
    types, table = set(), set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for block in node.body:
                for alias in block.names:
                    types.add((block.module, alias.name))
        elif isinstance(node, ast.Expr) and "at_first_use" in ast.unparse(node):
            given = ast.literal_eval(node.value.keywords[0].value)
            table |= {(s, n) for s, names in given.items() for n in names.split()}
    return types, table


PACKAGES = """renga renga.dataset renga.links renga.links.model
renga.links.model.language renga.links.model.vision renga.parallel renga.training
renga.training.updaters""".split()


@pytest.mark.parametrize("name", PACKAGES)
def test_names_at_first_use(name):
    module = importlib.import_module(name)
    types, table = at_first_use(pathlib.Path(module.__file__))
    assert types == table
    for source, each in table:
        assert each in dir(module)
        value = getattr(module, each)
        if source == name:
            assert value is importlib.import_module(f"{name}.{each}")
        else:
            assert value is getattr(importlib.import_module(source), each)


def test_all_names_are_imported_by_a_star():
    names = {}
    exec("from renga.links import *", names)
    assert names["ParallelLinear"].__name__ == "ParallelLinear"
    assert names["Linear"] is renga.links.Linear
