"""Copies of models in which links are replaced."""

import numpy as np

import renga
import renga.links as L
from renga.parallel.conversion.replacement import copy_with_replacements


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(2, 2)
            self.blocks = renga.Sequential(L.Linear(2, 2), self.forward_first)
            self.tied = renga.ChainList(self.first)

    def forward_first(self, x):
        return self.first(x)


class Doubled(L.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def test_links_are_replaced_wherever_they_are_referred_to():
    model, new = Net(), L.Linear(2, 2)
    found = copy_with_replacements(model, {id(model.first): new})
    assert type(found) is Net and found is not model
    assert found.first is new and found.tied[0] is new
    assert found.blocks[1].__self__ is found
    assert found.blocks[0] is not model.blocks[0]
    assert found.blocks[0].W is not model.blocks[0].W
    np.testing.assert_array_equal(found.blocks[0].W.array, model.blocks[0].W.array)
    assert dict(found.namedparams()).keys() == dict(model.namedparams()).keys()


def test_links_of_derived_classes():
    model, x = Net(), np.ones((1, 2), "f")
    found = copy_with_replacements(
        model, {}, lambda link: Doubled if type(link) is L.Linear else type(link)
    )
    assert type(found.first) is Doubled and type(model.first) is L.Linear
    assert found.tied[0] is found.first
    np.testing.assert_array_equal(found.first(x).array, 2 * model.first(x).array)


def test_the_copy_has_arrays_of_its_own():
    model = Net()
    found = copy_with_replacements(model, {})
    found.first.W.array[...] = 7
    assert not (model.first.W.array == 7).any()
