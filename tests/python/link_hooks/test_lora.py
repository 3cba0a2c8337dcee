"""Low-rank changes of fixed weights, against NumPy."""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.link_hooks import LoRA
from renga.serializers import load_npz, save_npz

rng = numpy.random.default_rng(0)
LINKS = {
    "Linear": (lambda: L.Linear(75, 4), (2, 75)),
    "Convolution2D": (lambda: L.Convolution2D(3, 4, 3), (2, 3, 5, 5)),
    "EmbedID": (lambda: L.EmbedID(6, 4), None),
}
CASES = pytest.mark.parametrize("name", LINKS)


@pytest.fixture(autouse=True)
def doubles():
    numpy.random.seed(0)
    with renga.using_config("dtype", numpy.dtype("d")):
        yield


def example(name):
    """A link with a hook whose matrix is not zero, inputs, and the sum."""
    make, shape = LINKS[name]
    link = make()
    link.add_hook(LoRA(2, alpha=6))
    link.W_B.array[...] = rng.normal(size=link.W_B.shape)
    x = numpy.array([[0, 3], [5, 3]]) if shape is None else rng.normal(size=shape)
    change = 3 * link.W_B.array @ link.W_A.array
    return link, x, link.W.array + change.reshape(link.W.shape)


def plain(name, link, W):
    """A link without a hook and with this weight."""
    other = LINKS[name][0]()
    other.W.array = W
    if name != "EmbedID":
        other.b.array = link.b.array
    return other


@CASES
def test_outputs_and_gradients(name):
    link, x, W = example(name)
    y = link(x)
    other = plain(name, link, W)
    numpy.testing.assert_allclose(y.array, other(x).array, 1e-10, 1e-12)
    gy = rng.normal(size=y.shape)
    for each in (link, other):
        each.cleargrads()
        F.sum(each(x) * gy).backward()
    gW = other.W.grad.reshape(len(W), -1)
    numpy.testing.assert_allclose(link.W_A.grad, 3 * link.W_B.array.T @ gW, 1e-9, 1e-12)
    numpy.testing.assert_allclose(link.W_B.grad, 3 * gW @ link.W_A.array.T, 1e-9, 1e-12)
    assert link.W.grad is None
    assert link.W_A.shape[0] == link.W_B.shape[1] == 2


@CASES
def test_it_changes_nothing_at_first_and_deleted_nothing(name):
    make, _ = LINKS[name]
    _, x, _ = example(name)
    link = make()
    before = link(x).array
    names = {path for path, _ in link.namedparams()}
    link.add_hook(LoRA(3))
    assert {path for path, _ in link.namedparams()} == names | {"/W_A", "/W_B"}
    numpy.testing.assert_array_equal(link(x).array, before)
    assert link.W_A.array.std() > 0
    link.delete_hook("LoRA")
    assert {path for path, _ in link.namedparams()} == names
    numpy.testing.assert_array_equal(link(x).array, before)


@CASES
def test_merged(name):
    link, x, W = example(name)
    hook = link.local_link_hooks["LoRA"]
    before = link(x).array
    hook.merge(link)
    assert not link.local_link_hooks and not hasattr(link, "W_A")
    numpy.testing.assert_allclose(link.W.array, W, 1e-12)
    numpy.testing.assert_allclose(link(x).array, before, 1e-10, 1e-12)


def test_training_changes_the_matrices_alone():
    link, x, _ = example("Linear")
    optimizer = renga.optimizers.AdamW(0.01, weight_decay_rate=0.1).setup(link)
    for name, param in link.namedparams():
        param.update_rule.enabled = name in ("/W_A", "/W_B")
    before = {path: p.array.copy() for path, p in link.namedparams()}
    for _ in range(2):
        optimizer.update(lambda: F.sum(F.square(link(x))))
    for path, p in link.namedparams():
        assert (p.array != before[path]).any() == (path in ("/W_A", "/W_B")), path
    # A fixed parameter needs no states of the optimizer.
    assert not link.W.update_rule.state and link.W_A.update_rule.state


def test_files_of_the_matrices(tmp_path):
    link, x, _ = example("Linear")
    file = tmp_path / "adapters.npz"
    arrays = {path.strip("/"): p.array for path, p in link.namedparams()}
    numpy.savez(file, **{n: a for n, a in arrays.items() if n.startswith("W_")})
    other, _, _ = example("Linear")
    other.W.array, other.b.array = link.W.array, link.b.array
    load_npz(file, other, strict=False)
    numpy.testing.assert_array_equal(other(x).array, link(x).array)
    save_npz(file, link)
    third, _, _ = example("Linear")
    load_npz(file, third)
    numpy.testing.assert_array_equal(third(x).array, link(x).array)


def test_dtypes():
    with renga.using_config("dtype", numpy.dtype("f")):
        link = L.Linear(3, 2)
    link.add_hook(LoRA(1))
    assert link.W_A.dtype == link.W_B.dtype == numpy.float32


def test_errors():
    with pytest.raises(ValueError, match="LoRA: expected rank of 1 or more, got 0"):
        LoRA(0)
    with pytest.raises(TypeError, match="LoRA: expected an integer as rank, got 'a'"):
        LoRA("a")
    with pytest.raises(TypeError, match="LoRA: expected a number as alpha, got '1'"):
        LoRA(1, "1")
    with pytest.raises(TypeError, match="UNet: expected integers as widths, got 2"):
        L.UNet(3, 2)
    link = L.Linear(3)
    with pytest.raises(ValueError, match="expected a weight with a shape"):
        link.add_hook(LoRA(2))
    assert not link.local_link_hooks
    with pytest.raises(ValueError, match="expected a parameter, got 'V'"):
        L.Linear(3, 2).add_hook(LoRA(2, weight_name="V"))
