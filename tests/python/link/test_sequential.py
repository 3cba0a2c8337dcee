"""Sequential: a list of layers that runs in order."""

import copy
import functools
import pickle

import numpy
import pytest

import renga
from renga import Parameter, Sequential


class Scale(renga.Link):
    """Multiplies by its parameter."""

    def __init__(self, value=1.0):
        super().__init__()
        with self.init_scope():
            self.w = Parameter(value, ())

    def forward(self, x):
        return x * self.w.array


def double(x):
    return 2 * x


def increment(x):
    return x + 1


def test_runs_in_order():
    assert Sequential(increment, double)(3) == 8
    assert Sequential(double, increment)(3) == 7
    assert Sequential(Scale(5.0), increment, Scale(2.0))(3.0) == 32
    with pytest.raises(RuntimeError, match="expected a layer"):
        Sequential()(3)


def test_tuples_become_arguments():
    model = Sequential(lambda a, b: (b, a), lambda a, b: a - b)
    assert model(1, 3) == 2
    assert Sequential(lambda x: [x, x], lambda x: x)(1) == [1, 1]


def test_links_are_children():
    model = Sequential(Scale(), double, Scale(), Sequential(Scale()))
    assert [name for name, _ in model.namedparams()] == ["/0/w", "/1/0/w", "/2/w"]
    assert len(model) == 4
    assert model[1] is double
    assert model[1:3] == [double, model[2]]
    assert list(model)[1] is double
    assert double in model
    assert list(reversed(model))[2] is double


@pytest.mark.parametrize(
    ("layers", "order"),
    [
        ([0, 1, 2, 3, 4], [0, 4, 3, 2, 1]),
        ([0, double, 1, double, 2, double, 3], [0, 3, 2, 1]),
        ([double, 0, 1, 2, 3], [0, 1, 3, 2]),
        ([double], []),
    ],
)
def test_names_are_those_of_chainer(layers, order):
    """The orders are those that Chainer 7.8.1 answers."""
    model = Sequential(*[x if callable(x) else Scale(float(x)) for x in layers])
    assert children(model) == [(str(k), value) for k, value in enumerate(order)]
    shared = model.copy()
    assert children(shared) == children(model)


@pytest.mark.parametrize(
    ("edit", "order"),
    [
        (lambda m: m.insert(0, Scale(9)), [9, 0, 3, 2, 1]),
        (lambda m: m.insert(2, Scale(9)), [0, 9, 3, 2, 1]),
        (lambda m: m.insert(-1, Scale(9)), [0, 9, 3, 2, 1]),
        (lambda m: m.__setitem__(0, Scale(9)), [9, 3, 2, 1]),
        (lambda m: m.__setitem__(2, Scale(9)), [0, 9, 3, 2]),
        (lambda m: m.__setitem__(2, m[2]), [0, 3, 2, 1]),
        (lambda m: m.__delitem__(0), [3, 2, 1]),
        (lambda m: (m.pop(0), m.append(Scale(9))), [3, 2, 9, 1]),
        (lambda m: (m.pop(0), m.insert(0, Scale(9))), [9, 3, 2, 1]),
    ],
)
def test_names_after_edits_are_those_of_chainer(edit, order):
    """The orders are those that Chainer 7.8.1 answers; files name links by them."""
    model = Sequential(Scale(0), double, Scale(1), Scale(2), Scale(3))
    edit(model)
    assert children(model) == [(str(k), value) for k, value in enumerate(order)]


def test_objects_that_are_no_layers():
    for make in (
        lambda: Sequential(3),
        lambda: Sequential().append(3),
        lambda: Sequential().insert(0, 3),
        lambda: Sequential(double).__setitem__(0, 3),
    ):
        with pytest.raises(ValueError, match="callable"):
            make()


def names(model):
    return [getattr(layer, "__name__", type(layer).__name__) for layer in model]


def children(model):
    return [(child.name, float(child.w.array)) for child in model.children()]


def test_edits():
    model = Sequential(Scale(1.0), double)
    model.append(Scale(2.0))
    model.insert(0, increment)
    model.insert(1, Scale(0.0))
    assert names(model) == ["increment", "Scale", "Scale", "double", "Scale"]
    assert children(model) == [("0", 1.0), ("1", 0.0), ("2", 2.0)]  # Chainer's order
    model[1] = increment
    assert children(model) == [("0", 1.0), ("1", 2.0)]
    del model[0]
    assert model.pop().w.array == 2
    model.remove(double)
    assert names(model) == ["increment", "Scale"]
    model.reverse()
    assert names(model) == ["Scale", "increment"]
    model.extend(Sequential(double, double))
    assert model.count(double) == 2
    assert model.index(double) == 2
    assert model.index(double, 3) == 3
    with pytest.raises(ValueError, match="not in list"):
        model.index(double, 0, 2)
    model.clear()
    assert len(model) == 0
    assert list(model.params()) == []


def test_edit_errors():
    model = Sequential(double)
    with pytest.raises(ValueError, match="one of the layers"):
        model.remove(increment)
    for edit in (
        lambda: model.insert(5, increment),
        lambda: model.pop(3),
        lambda: model[3],
    ):
        with pytest.raises(IndexError):
            edit()


def test_by_type():
    model = Sequential(Scale(), double, Scale(), increment)
    assert model.count_by_layer_type("Scale") == 2
    assert model.count_by_layer_type("double") == 1
    model.remove_by_layer_type("Scale")
    assert names(model) == ["double", "increment"]


def test_sums():
    first, second = Sequential(double), Sequential(increment)
    assert names(first + second) == ["double", "increment"]
    assert len(first) == 1
    first += second
    assert names(first) == ["double", "increment"]
    with pytest.raises(ValueError, match="int"):
        first + 3


def test_flatten():
    model = Sequential(Sequential(double, Sequential(Scale(3.0))), increment)
    flat = model.flatten()
    assert names(flat) == ["double", "Scale", "increment"]
    assert flat(1.0) == model(1.0) == 7
    assert flat[1] is model[0][1][0]


def test_text():
    model = Sequential(Scale(), Sequential(Scale()))
    assert str(model) == (
        "Sequential(\n  (0): Scale(),\n  (1): Sequential(\n    (0): Scale(),\n  ),\n)"
    )


@pytest.mark.parametrize("mode", ["share", "copy", "init"])
def test_copy(mode):
    model = Sequential(Scale(3.0), double, Sequential(Scale(4.0)))
    model[0].w.array[...] = 5
    clone = model.copy(mode)
    assert clone[1] is double
    assert clone[0] is not model[0]
    assert (clone[0].w.array is model[0].w.array) == (mode == "share")
    assert clone[0].w.array == (3 if mode == "init" else 5)
    assert [name for name, _ in clone.namedparams()] == ["/0/w", "/1/0/w"]
    clone.append(double)
    assert len(model) == 3
    with pytest.raises(ValueError, match="nonsense"):
        model.copy("nonsense")


def test_copy_of_a_subclass_keeps_its_own():
    class Own(Sequential):
        pass

    model = Own(double)
    with model.init_scope():
        model.p = Parameter(1.0, (2,))
    for mode in ("share", "copy"):
        clone = model.copy(mode)
        assert type(clone) is Own
        assert [name for name, _ in clone.namedparams()] == ["/p"]


def test_repeat():
    model = Sequential(Scale(3.0), double).repeat(2)
    assert [name for name, _ in model.namedparams()] == ["/0/0/w", "/1/0/w"]
    assert model(1.0) == 36
    assert model[0][0] is not model[1][0]


def test_copyparams():
    source, target = Sequential(double, Scale(3.0)), Sequential(double, Scale(0.0))
    target.copyparams(source)
    assert target(1.0) == 6


def test_pickle():
    model = Sequential(Scale(3.0), functools.partial(double))
    clone = pickle.loads(pickle.dumps(model))
    assert clone(1.0) == 6
    with pytest.raises(ValueError, match="lambda"):
        pickle.dumps(Sequential(lambda x: x))
    for mode in ("share", "copy", "init"):
        assert Sequential(lambda x: x + 1).copy(mode)(1) == 2
    assert copy.deepcopy(Sequential(lambda x: x + 1))(1) == 2
    assert renga.Chain(s=Sequential(lambda x: x + 1)).copy("copy").s(1) == 2


def test_calls_of_layers_pass_the_hooks():
    class Count(renga.LinkHook):
        calls = 0

        def forward_preprocess(self, args):
            self.calls += 1

    with Count() as hook:
        Sequential(Scale(), double, Scale())(numpy.float32(1))
    assert hook.calls == 3


def test_item_that_is_not_there_cannot_be_set():
    model = renga.Sequential(renga.functions.relu)
    with pytest.raises(ValueError, match="below 1, got 9"):
        model[9] = renga.functions.tanh
    model[-1] = renga.functions.tanh
    assert list(model) == [renga.functions.tanh]


def test_text_names_functions():
    text = str(renga.Sequential(renga.functions.relu, renga.functions.swish))
    assert "(0): <function relu>," in text
    assert "(1): <function swish at " in text
