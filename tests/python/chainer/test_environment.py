"""Chainer's variables of the environment."""

import os

import pytest

from tests.scripts import run_program


def run(**variables):
    """What a program with the alias prints of the configuration."""
    code = """
        import renga.chainer
        renga.chainer.install()
        import chainer
        config = chainer.global_config
        print(config.debug, config.type_check, config.keep_graph_on_report, end=" ")
        print(config.warn_nondeterministic, config.use_cudnn, config.use_ideep, end=" ")
        print(chainer.get_dtype(), chainer.links.Linear(2, 2).W.dtype)
    """
    others = {k: v for k, v in os.environ.items() if not k.startswith("CHAINER_")}
    return run_program(code, env={**others, **variables})


DEFAULTS = "False True False False auto never float32 float32"


@pytest.mark.parametrize(
    ("variables", "printed"),
    [
        ({}, DEFAULTS),
        (
            {"CHAINER_DEBUG": "1", "CHAINER_TYPE_CHECK": "0"},
            "True False False False auto never float32 float32",
        ),
        (
            {"CHAINER_KEEP_GRAPH_ON_REPORT": "1", "CHAINER_WARN_NONDETERMINISTIC": "1"},
            "False True True True auto never float32 float32",
        ),
        (
            {"CHAINER_USE_CUDNN": "never", "CHAINER_USE_IDEEP": "auto"},
            "False True False False never auto float32 float32",
        ),
        (
            {"CHAINER_DTYPE": "float64"},
            DEFAULTS.replace("float32", "float64"),
        ),
        ({"CHAINER_DTYPE": "mixed16"}, DEFAULTS.replace("float32", "float16")),
    ],
)
def test_variables_change_defaults(variables, printed):
    done = run(**variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == printed


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("CHAINER_DTYPE", "int32", "TypeError: CHAINER_DTYPE: expected float16, "),
        ("CHAINER_DEBUG", "yes", "ValueError: CHAINER_DEBUG: expected 0 or 1, got"),
    ],
)
def test_other_values_are_refused(variable, value, message):
    done = run(**{variable: value})
    assert done.returncode == 1 and message in done.stderr
