"""inspect, and with it completion, knows the parameters of everything public."""

import importlib
import inspect
import pkgutil
import warnings

import pytest

import renga

# Made by the core alone. Python knows no signatures of exceptions and dictionaries.
WITHOUT = {"VariableNode", "Node", "NodeLink", "Call"}


def modules():
    yield renga
    for found in pkgutil.walk_packages(renga.__path__, "renga."):
        parts = found.name.split(".")[1:]
        if any(part[0] == "_" for part in parts) or parts[0].startswith("lib"):
            continue
        if found.name != "renga.chainer.preload":  # which installs the alias
            yield importlib.import_module(found.name)


def public():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in modules():
            for name, value in vars(module).items():
                is_ours = getattr(value, "__module__", None) or ""
                if name[0] != "_" and callable(value) and is_ours.startswith("renga"):
                    yield f"{module.__name__}.{name}", value


def test_everything_public_has_a_signature():
    missing = []
    for name, value in public():
        builtin = (BaseException, dict)
        if isinstance(value, type) and issubclass(value, builtin):
            continue
        if name.rpartition(".")[2] in WITHOUT:
            continue
        try:
            inspect.signature(value)
        except (TypeError, ValueError) as error:
            missing.append((name, str(error)))
    assert not missing


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        (renga.functions.max, "(x, axis=None, keepdims=False)"),
        (renga.functions.concat, "(xs, axis=1)"),
        (renga.functions.relu, "(x)"),
        (renga.Variable, "(data=None, *, name=None, grad=None, requires_grad=True)"),
        (renga.set_num_threads, "(n)"),
    ],
)
def test_functions_of_the_core(function, signature):
    assert str(inspect.signature(function)) == signature
    assert "--" not in (function.__doc__ or "")
