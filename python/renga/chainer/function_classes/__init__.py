"""Chainer's classes of functions, such as ``chainer.functions.noise.dropout.Dropout``.

Each is a FunctionNode that calls the function of ``renga.functions``.
"""

from __future__ import annotations

from renga.chainer.function_classes.generated import classes


def find_class(module: str, name: str) -> type | None:
    """The class that Chainer has in ``module``; None without one."""
    return classes().get((module, name))
