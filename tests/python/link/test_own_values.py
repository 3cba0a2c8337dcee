"""What a link itself has: its parameters and persistent values by name."""

import numpy

import renga
import renga.links as L
from renga.core.link.own_values import own_params, own_persistent, persistent_arrays


def test_values_are_those_of_the_link_without_its_children():
    model = renga.Chain(norm=L.BatchNormalization(3))
    with model.init_scope():
        model.z, model.a = renga.Parameter(0.0, (2,)), renga.Parameter(0.0, (4,))
    model.add_persistent("count", 7)
    model.add_persistent("all", numpy.ones(2))
    assert list(own_params(model).items()) == [("a", model.a), ("z", model.z)]
    assert list(own_persistent(model)) == ["all", "count"]
    assert list(own_params(model.norm)) == ["beta", "gamma"]
    found = persistent_arrays(model)
    assert list(found) == ["//all", "/norm/avg_mean", "/norm/avg_var"]
    assert found["/norm/avg_var"] is model.norm.avg_var
