"""Settings of the configuration by Chainer's variables of the environment."""

from __future__ import annotations

import os

import numpy

from renga.core.configuration import global_config
from renga.core.dtypes import mixed16

_FLAGS = {
    "CHAINER_DEBUG": "debug",
    "CHAINER_KEEP_GRAPH_ON_REPORT": "keep_graph_on_report",
    "CHAINER_TYPE_CHECK": "type_check",
    "CHAINER_WARN_NONDETERMINISTIC": "warn_nondeterministic",
}
_WORDS = {"CHAINER_USE_CUDNN": "use_cudnn", "CHAINER_USE_IDEEP": "use_ideep"}
_DTYPES = ("float16", "float32", "float64", "mixed16")


def read_environment() -> None:
    """Changes the defaults that variables of the environment are set for.

    Raises:
        TypeError: CHAINER_DTYPE is no dtype for parameters.
        ValueError: a flag is no number.
    """
    for variable, setting in _FLAGS.items():
        if variable in os.environ:
            setattr(global_config, setting, _flag(variable))
    for variable, setting in _WORDS.items():
        if variable in os.environ:
            setattr(global_config, setting, os.environ[variable])
    if "CHAINER_DTYPE" in os.environ:
        name = os.environ["CHAINER_DTYPE"]
        if name not in _DTYPES:
            raise TypeError(
                f"CHAINER_DTYPE: expected {', '.join(_DTYPES)}, got {name!r}"
            )
        dtype = mixed16 if name == "mixed16" else numpy.dtype(name)
        global_config.dtype = dtype


def _flag(variable: str) -> bool:
    text = os.environ[variable]
    try:
        return bool(int(text))
    except ValueError:
        raise ValueError(f"{variable}: expected 0 or 1, got {text!r}") from None
