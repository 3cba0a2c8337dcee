"""DeviceResident: visitors of a tree of links."""

import numpy
import pytest

import renga
from renga import Chain, Link, Parameter


class Part(Link):
    """A parameter and a persistent array."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.w = Parameter(0.0, (2,))
        self.add_persistent("shift", numpy.zeros(2, numpy.float32))


def make_chain():
    chain = Chain(a=Part(), b=Part())
    with chain.init_scope():
        chain.lazy = Parameter(1.0)
    return chain


class Visitor(renga.device_resident.DeviceResidentsVisitor):
    """Records the arrays and adds one to them."""

    def __init__(self):
        self.residents, self.variables = [], []

    def visit_device_resident(self, resident):
        self.residents.append(resident)

    def visit_variable(self, variable):
        self.variables.append(variable)

    def visit_array(self, array):
        return array + 1


def test_visitor_is_called_for_all_arrays():
    chain, visitor = make_chain(), Visitor()
    chain.device_resident_accept(visitor)
    assert visitor.residents == [chain, chain.a, chain.b]
    assert {id(x) for x in visitor.variables} == {id(x) for x in chain.params()}
    numpy.testing.assert_array_equal(chain.a.shift, [1, 1])


def test_override_of_to_device_is_refused():
    with pytest.raises(TypeError, match="expected device_resident_accept to be over"):

        class Own(Part):
            def to_device(self, device):
                return self

    chain = Chain(own=Part(), other=Part())
    assert chain.to_device("@numpy") is chain
    assert chain.device == renga.backend.CpuDevice()
    assert chain.xp is numpy
    assert chain.to_cpu() is chain
    assert chain.from_chx() is chain


def test_a_method_of_a_link_is_called_once():
    class Own(Part):
        moves = 0

        def to_cpu(self):
            self.moves += 1
            return super().to_cpu()

    own = Own().to_cpu()
    assert own.moves == 1
    Chain(own=own, other=Part()).to_cpu()
    assert own.moves == 2


@pytest.mark.parametrize("move", ["to_gpu", "to_chx", "to_intel64"])
def test_devices_that_are_not_there(move):
    if move == "to_gpu" and renga.backends.cuda.available:
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError):
        getattr(make_chain(), move)()
