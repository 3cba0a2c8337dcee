"""final, nondeterministic and functions that need a GPU."""

import warnings

import numpy
import pytest

import renga
from renga import utils
from renga.utils import conv, conv_nd


class Base(utils.enable_final()):
    @utils.final
    def raised(self):
        return 1

    @utils.final(action=DeprecationWarning)
    def warned(self):
        return 2


def test_final_methods():
    class Fine(Base):
        def other(self):
            return self.raised() + self.warned()

    assert Fine().other() == 3
    with pytest.raises(TypeError, match="raised"):
        type("Wrong", (Base,), {"raised": None})
    with pytest.warns(DeprecationWarning, match="warned"):
        type("Warned", (Base,), {"warned": None})
    with pytest.raises(TypeError):
        utils.final(other=1)


def test_enable_final_derives_from_bases():
    class Meta(type):
        made = True

    mixed = utils.enable_final(base=(dict,), meta_base=(Meta,))
    assert issubclass(mixed, dict) and mixed.made


def test_nondeterministic():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        utils.nondeterministic("f")
    with renga.using_config("warn_nondeterministic", True):
        with pytest.warns(UserWarning, match="f"):
            utils.nondeterministic("f")


@pytest.mark.skipif(renga.backends.cuda.available, reason="there is a GPU")
def test_columns_on_gpus():
    x = numpy.zeros((1, 1, 2, 2), "f")
    for call in (
        lambda: conv.im2col_gpu(x, 1, 1, 1, 1, 0, 0),
        lambda: conv.col2im_gpu(x, 1, 1, 0, 0, 2, 2),
        lambda: conv_nd.im2col_nd_gpu(x, (1, 1), (1, 1), (0, 0)),
        lambda: conv_nd.col2im_nd_gpu(x, (1, 1), (0, 0), (2, 2)),
    ):
        with pytest.raises(RuntimeError, match="cuda"):
            call()


def test_walker_alias_moves_with_its_device():
    alias = utils.WalkerAlias([1, 0, 3])
    assert alias.to_cpu() is alias and alias.xp is numpy and not alias.use_gpu
    numpy.random.seed(0)
    first = alias.sample((30, 4))
    numpy.random.seed(0)
    numpy.testing.assert_array_equal(alias.sample_xp(numpy, (30, 4)), first)
    assert set(first.ravel()) == {0, 2}
