"""Modules of renga.core have Chainer's names, without the name of the folder."""

import importlib
import pickle
from pathlib import Path

import pytest

import renga
import renga.core

FOLDER = Path(renga.core.__path__[0])
MODULES = sorted(
    ".".join(path.relative_to(FOLDER).with_suffix("").parts).replace(".__init__", "")
    for path in FOLDER.rglob("*.py")
    if path != FOLDER / "__init__.py"
)


@pytest.mark.parametrize("name", MODULES)
def test_both_names_are_one_module(name):
    module = importlib.import_module(f"renga.core.{name}")
    assert importlib.import_module(f"renga.{name}") is module
    top = name.partition(".")[0]
    assert getattr(renga, top) is getattr(renga.core, top)


@pytest.mark.parametrize("name", ["memory", "kernels"])
def test_modules_of_the_runtime_that_users_import(name):
    module = importlib.import_module(f"renga.{name}")
    assert module is importlib.import_module(f"renga._runtime.{name}")
    assert getattr(renga, name) is module


def test_pickles_name_modules_with_or_without_the_folder():
    for module, name in [
        ("variable", "Variable"),
        ("parameter", "Parameter"),
        ("link.chain", "Chain"),
        ("optimizer.hyperparameter", "Hyperparameter"),
        ("seed", "seed_everything"),
    ]:
        found = pickle.loads(f"crenga.{module}\n{name}\n.".encode())
        assert found.__name__ == name
        assert pickle.loads(pickle.dumps(found)) is found
