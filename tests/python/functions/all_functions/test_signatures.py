"""Functions have the signatures of Chainer 7.8.1."""

import inspect

import renga.functions as F
from tests.catalogue import CATALOGUE

SIGNATURES = {row.name: row.signature for row in CATALOGUE.values() if row.signature}


def parameters(function):
    """(name, default) of each parameter."""
    listed = inspect.signature(function).parameters.values()
    return [(str(p).partition("=")[0].partition(":")[0], p.default) for p in listed]


def test_names_and_defaults():
    for name, signature in SIGNATURES.items():
        namespace = {}
        exec(f"def {name}{signature}: pass", namespace)
        assert parameters(getattr(F, name)) == parameters(namespace[name]), name
