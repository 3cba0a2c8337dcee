"""Debug mode finds NaN in functions of the core, forward and backward."""

import subprocess
import sys

import numpy
import pytest

import renga
import renga.functions as F


@pytest.fixture(autouse=True)
def debug():
    with renga.using_config("debug", True):
        yield
    assert not renga.get_function_hooks()


def v(*values):
    return renga.Variable(numpy.array(values, "f"))


def test_forward():
    with pytest.raises(RuntimeError, match="log.*NaN"):
        F.log(v(-1, 1))
    with pytest.raises(RuntimeError, match="NaN"):
        v(numpy.inf) - v(numpy.inf)
    assert F.log(v(1)).array == 0


def test_backward_within_the_graph():
    x = v(0)
    y = F.sum(F.sqrt(x * 1) * 0)
    with pytest.raises(RuntimeError, match="NaN in the gradient"):
        y.backward()


def test_backward_at_a_leaf():
    x = v(0)
    x.name = "x"
    y = F.sum(F.sqrt(x) * 0)
    with pytest.raises(RuntimeError, match="NaN in the gradient of <variable x>"):
        y.backward()


def test_other_modes():
    with renga.using_config("debug", False):
        assert numpy.isnan(F.log(v(-1)).array)
    with pytest.raises(RuntimeError):
        F.log(v(-1))


def test_without_debug_mode_nothing_is_checked():
    renga.set_debug(False)
    x = v(-1)
    F.sum(F.log(x)).backward()
    renga.set_debug(True)
    renga.set_debug(True)
    with pytest.raises(RuntimeError):
        F.log(x)


def test_what_is_set_twice_leaves_nothing_behind():
    renga.set_debug(True)  # as it is already
    for _ in range(2):
        renga.set_debug(False)
        x = v(0)
        F.sum(F.sqrt(x) * 0).backward()
        assert numpy.isnan(x.grad)


def test_a_program_may_end_in_debug_mode():
    program = "import renga; renga.set_debug(True)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
