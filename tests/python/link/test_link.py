"""Link, Chain and ChainList: what is registered, visited, copied and saved."""

import copy
import pickle

import numpy
import pytest

import renga
from renga import Chain, ChainList, Link, Parameter, initializers
from renga.serializers import DictionarySerializer, NpzDeserializer


class Part(Link):
    """A parameter, an array and a number that are saved."""

    def __init__(self, size=2):
        super().__init__()
        with self.init_scope():
            self.w = Parameter(initializers.Normal(1.0), size)
        self.add_persistent("shift", numpy.zeros(2, numpy.float32))
        self.add_persistent("calls", 0)

    @property
    def printable_specs(self):
        yield "size", self.w.size


def make_chain():
    chain = Chain(b=Part(), a=Part(3))
    with chain.init_scope():
        chain.z = Parameter(1.0, (1,))
        chain.lazy = Parameter(1.0)
    return chain


def make_list():
    return ChainList(Part(1), Chain(x=Part(2)), Part(3))


# Registration


def test_init_scope_registers():
    link = Link()
    with link.init_scope():
        assert link.within_init_scope
        link.w = Parameter(0.0, (2,))
    link.other = Parameter(0.0, (2,), name="of another link")
    assert not link.within_init_scope
    assert [name for name, _ in link.namedparams()] == ["/w"]
    assert link.w.name == "w"


def test_init_scope_of_one_link_is_not_that_of_another():
    outer, inner = Link(), Link()
    with outer.init_scope():
        inner.w = Parameter(0.0, (2,), name="w")
    assert list(inner.params()) == []


def test_a_child_decides_which_parameters_its_parents_have():
    class Frozen(renga.links.Linear):
        def params(self, include_uninit=True):
            return iter([self.b])

    model = Chain(first=Frozen(2, 3), second=renga.links.Linear(2, 3))
    expected = [model.first.b, model.second.W, model.second.b]
    assert list(map(id, renga.Sequential(model).params())) == list(map(id, expected))


def test_init_scope_ends_with_an_exception():
    link = Link()
    with pytest.raises(KeyError), link.init_scope():
        raise KeyError
    assert not link.within_init_scope


def test_forgotten_init():
    class Forgetful(Chain):
        def __init__(self):
            pass

    for use in (
        lambda x: x.add_param("w", (2,)),
        lambda x: x.add_persistent("w", 2),
        lambda x: x.add_link("w", Link()),
    ):
        with pytest.raises(RuntimeError, match="__init__.. has not been called"):
            use(Forgetful())


def test_keyword_parameters():
    link = Link(x=(2, 3), y=5, z=((2,), "d"))
    assert [(p.name, p.shape) for p in link.params()] == [
        *(("x", (2, 3)), ("y", (5,)), ("z", (2,))),
    ]
    assert link.z.dtype == numpy.float64
    assert numpy.isnan(link.x.array).all()


def test_add_param():
    link = Link()
    link.add_param("w", (2, 3), initializer=4)
    link.add_param("lazy", dtype="d")
    numpy.testing.assert_array_equal(link.w.array, numpy.full((2, 3), 4))
    assert not link.lazy.is_initialized
    link.lazy.initialize((2,))
    assert link.lazy.dtype == numpy.float64
    for add in (link.add_param, lambda name: link.add_persistent(name, 3)):
        for name in ("w", "name"):
            with pytest.raises(AttributeError, match="attribute exists"):
                add(name)


def test_persistent():
    link = Link()
    link.add_persistent("value", 3)
    link.late = 4
    link.register_persistent("late")
    with pytest.raises(AttributeError, match="expected an attribute, got 'nothing'"):
        link.register_persistent("nothing")
    saved = DictionarySerializer()
    link.serialize(saved)
    assert sorted(saved.target) == ["late", "value"]


def test_delete_unregisters():
    link = Part()
    del link.w
    del link.calls
    saved = DictionarySerializer()
    link.serialize(saved)
    assert list(saved.target) == ["shift"]


def test_children_of_a_chain():
    chain = make_chain()
    assert [child.name for child in chain.children()] == ["a", "b"]
    assert chain["a"] is chain.a
    with pytest.raises(AttributeError, match="nothing"):
        chain["nothing"]
    with pytest.raises(AttributeError, match="attribute exists"):
        chain.add_link("a", Link())
    with pytest.raises(TypeError, match="int"):
        chain.add_link(3, Link())
    with pytest.raises(TypeError, match="expected a Link"):
        chain.add_link("c", 3)
    with pytest.raises(AttributeError, match="attribute exists"), chain.init_scope():
        chain.a = Link()
    del chain.a
    assert [child.name for child in chain.children()] == ["b"]
    new = Link()
    chain.b = new  # to exchange a registered child needs no scope
    assert list(chain.children()) == [new]


def test_children_of_a_list():
    links = make_list()
    assert len(links) == 3
    assert [child.name for child in links] == ["0", "1", "2"]
    links.insert(1, Link())
    del links[0]
    links[1:2] = [Link(), Link()]
    assert [child.name for child in links] == ["0", "1", "2", "3"]
    assert links[-1].w.size == 3
    assert len(links[1:]) == 3
    links.add_link(Link())
    assert links.pop().name == "4"
    links.reverse()
    assert links[0].w.size == 3
    with pytest.raises(IndexError):
        links[4]
    for change in (links.append, lambda x: links.insert(0, x), ChainList):
        with pytest.raises(TypeError, match="int"):
            change(3)
    with pytest.raises(TypeError, match="init_scope"), links.init_scope():
        links.child = Link()
    assert len(links) == 4
    links.clear()
    assert list(links.params()) == []


# The tree


def test_paths():
    assert [name for name, _ in make_chain().namedparams()] == [
        *("/lazy", "/z", "/a/w", "/b/w"),
    ]
    assert [name for name, _ in make_chain().namedparams(False)] == [
        *("/z", "/a/w", "/b/w"),
    ]
    assert [name for name, _ in make_list().namedparams()] == [
        *("/0/w", "/1/x/w", "/2/w"),
    ]
    assert [name for name, _ in make_list().namedlinks()] == [
        *("/", "/0", "/1", "/1/x", "/2"),
    ]
    assert [name for name, _ in make_chain().namedlinks(skipself=True)] == ["/a", "/b"]
    chain = make_chain()
    assert list(chain.links()) == [chain, chain.a, chain.b]


def test_count_params_warns_of_what_has_no_shape():
    with pytest.warns(UserWarning, match="/lazy"):
        assert make_chain().count_params() == 1 + 3 + 2


def test_text():
    assert str(Link()) == "Link()"
    expected = "Chain(\n  (x): Part(size=2),\n)"
    assert str(Chain(x=Part())) == expected
    assert str(ChainList(Link(), Chain(x=Part()))) == (
        "ChainList(\n  (0): Link(),\n  (1): Chain(\n    (x): Part(size=2),\n  ),\n)"
    )


def test_gradients_of_the_tree():
    mine, other = make_list(), make_list()
    mine.cleargrads()
    assert all(param.grad is None for param in mine.params())
    for k, param in enumerate(other.params()):
        param.grad = numpy.full(param.shape, k, numpy.float32)
    mine.addgrads(other)
    mine.addgrads(other)
    for k, param in enumerate(mine.params()):
        numpy.testing.assert_array_equal(param.grad, numpy.full(param.shape, 2 * k))
    with pytest.warns(DeprecationWarning):
        mine.zerograds()
    assert all((param.grad == 0).all() for param in mine.params())


# Copies


@pytest.mark.parametrize("make", [make_chain, make_list])
@pytest.mark.parametrize("mode", ["share", "copy", "init"])
def test_copy(make, mode):
    model = make()
    for param in model.params(include_uninit=False):
        param.grad = numpy.ones_like(param.array)
    clone = model.copy(mode)
    names = [name for name, _ in model.namedparams()]
    assert [name for name, _ in clone.namedparams()] == names
    for old, new in zip(model.params(False), clone.params(False)):
        assert new is not old
        assert new.name == old.name
        assert (new.array is old.array) == (mode == "share")
        if mode == "copy":
            numpy.testing.assert_array_equal(new.array, old.array)
            numpy.testing.assert_array_equal(new.grad, old.grad)
        elif mode == "share":
            assert new.grad is None
        elif old.name == "w":  # drawn from a continuous distribution
            assert (new.array != old.array).all()
    assert [child.name for child in clone.children()] == [
        child.name for child in model.children()
    ]


def test_shared_copy_registers_separately():
    link = Part()
    link.name = "mine"
    clone = link.copy()
    assert clone.name is None
    with clone.init_scope():
        clone.v = Parameter(0.0, (1,))
    assert [name for name, _ in link.namedparams()] == ["/w"]
    chain = make_chain()
    chain.copy().add_link("c", Link())
    assert "c" not in [child.name for child in chain.children()]


def test_copy_mode():
    with pytest.raises(ValueError, match="nonsense"):
        Link().copy("nonsense")


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_deep_copies(duplicate):
    chain = make_chain()
    clone = duplicate(chain)
    numpy.testing.assert_array_equal(clone.a.w.array, chain.a.w.array)
    clone.a.w.array[...] = 0
    assert (chain.a.w.array != 0).all()


def test_copyparams():
    source, target = make_chain(), make_chain()
    source.a.shift[...] = 5
    source.a.calls = 7
    target.copyparams(source)
    for (_, new), (_, old) in zip(target.namedparams(), source.namedparams()):
        numpy.testing.assert_array_equal(new.array, old.array)
    numpy.testing.assert_array_equal(target.a.shift, [5, 5])
    assert target.a.shift is not source.a.shift
    assert target.a.calls == 7
    third = make_chain()
    third.copyparams(source, copy_persistent=False)
    assert (third.a.calls, third.a.shift[0]) == (0, 0)
    numpy.testing.assert_array_equal(third.a.w.array, source.a.w.array)
    lists = make_list(), make_list()
    lists[0].copyparams(lists[1])
    numpy.testing.assert_array_equal(lists[0][1].x.w.array, lists[1][1].x.w.array)


def test_repeat():
    repeated = Part().repeat(3)
    assert isinstance(repeated, renga.Sequential)
    values = numpy.array([link.w.array for link in repeated])
    assert len(numpy.unique(values)) == 6
    shared = Part().repeat(2, mode="share")
    assert shared[0].w.array is shared[1].w.array
    assert len(Part().repeat(0)) == 0


# Serialization


@pytest.mark.parametrize("make", [make_chain, make_list, Part])
def test_save_and_load(make):
    source, target = make(), make()
    saved = DictionarySerializer()
    source.serialize(saved)
    target.serialize(NpzDeserializer(copy.deepcopy(saved.target), strict=False))
    for (name, new), (_, old) in zip(target.namedparams(), source.namedparams()):
        if old.is_initialized:
            assert name[1:] in saved.target
            numpy.testing.assert_array_equal(new.array, old.array)


def test_order_of_serialization():
    saved = DictionarySerializer()
    Chain(b=Part(), a=Part()).serialize(saved)
    names = ["w", "calls", "shift"]
    assert list(saved.target) == [f"{x}/{name}" for x in "ab" for name in names]


def test_load_initializes_parameters():
    source, target = Link(), Link()
    source.add_param("w", (2, 3), initializer=4)
    with target.init_scope():
        target.w = Parameter(0.0)
    saved = DictionarySerializer()
    source.serialize(saved)
    target.serialize(NpzDeserializer(saved.target))
    numpy.testing.assert_array_equal(target.w.array, source.w.array)
    assert target.w.dtype == numpy.float32


def test_load_keeps_the_array():
    link = Part()
    array = link.w.array
    values = {"w": [1, 2], "shift": [3, 4], "calls": 5}
    stored = {name: numpy.array(value) for name, value in values.items()}
    link.serialize(NpzDeserializer(stored))
    assert link.w.array is array
    numpy.testing.assert_array_equal(array, [1, 2])
    assert link.calls == 5
