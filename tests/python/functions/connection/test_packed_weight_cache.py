"""Packed weights are cached from their second use until they may have changed."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core, serializers
from tests.links.cases import windows
from tests.links.cases.algorithms import convolutions_by

SCALE = np.float32(-1.5)


@pytest.fixture(params=["winograd", "direct"], autouse=True)
def kernel(request):
    with convolutions_by(request.param):
        yield


def image(batch: int = 2) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((batch, 32, 6, 6), "f")


def make() -> Any:
    return L.Convolution2D(32, 64, 3, pad=1, nobias=True)


def hold(link: Any, W: np.ndarray, x: np.ndarray) -> None:
    """The convolution with ``W``."""
    with renga.no_backprop_mode():
        y = link(x).array
    expected = windows.convolution(x.astype("d"), W.astype("d"), pad=1)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def used(link: Any, times: int = 3) -> np.ndarray:
    """A convolution's weights, used often enough for the packed form to be cached."""
    W = link.W.array.copy()
    for _ in range(times):
        hold(link, W, image())
    return W


def memory() -> int:
    return _core.memory_stats("cpu")["in_use"]


def test_packed_weights_are_cached_until_the_array_is_exposed():
    link = make()
    x = image()
    W = link.W.array.copy()
    for _ in range(2):
        hold(link, W, x)
    assert link.W.array is not None
    before = memory()
    for _ in range(3):
        hold(link, W, x)
    kept = memory()
    assert kept - before >= W.nbytes
    hold(link, W, x)
    assert memory() == kept
    assert link.W.array is not None
    assert memory() == before


def steps_of_training(link: Any, uses: int, batch: int = 2) -> list[int]:
    """The memory after each of four steps that use the weights so many times."""
    optimizer = renga.optimizers.SGD(1e-3).setup(link)
    x = renga.Variable(image(batch))
    steps = []
    for _ in range(4):
        link.cleargrads()
        for _ in range(uses):
            F.sum(link(x)).backward()
        steps.append(memory())
        optimizer.update()
    return steps


@pytest.mark.parametrize("uses", [1, 3])
def test_nothing_is_kept_where_a_step_uses_weights_few_times(uses):
    steps = steps_of_training(make(), uses)
    assert steps[1:] == steps[:1] * 3


def test_packed_weights_are_kept_where_a_step_uses_them_many_times():
    link = make()
    once = steps_of_training(link, uses=1)[-1]
    again = steps_of_training(link, uses=4)[-1]
    assert again - once >= link.W.array.nbytes


def test_packed_weights_are_kept_from_the_first_use_after_a_step_of_many():
    link = make()
    before = steps_of_training(link, uses=1)[-1]
    steps_of_training(link, uses=4)
    after_one = steps_of_training(link, uses=1)
    assert after_one[0] - before >= link.W.array.nbytes
    assert after_one[1:] == [before] * 3


def test_nothing_is_kept_for_batches_of_many_pixels():
    link = make()
    once = steps_of_training(link, uses=1, batch=64)[-1]
    assert steps_of_training(link, uses=4, batch=64)[-1] == once


def in_place(link: Any) -> None:
    link.W.array[...] *= SCALE


def an_element(link: Any) -> None:
    link.W.array[3, 5, 1, 2] += 7


def another_array(link: Any) -> None:
    link.W.array = link.W.array * SCALE


def a_view(link: Any) -> None:
    F.reshape(link.W, (64, -1)).array[5] = 0


def an_update(link: Any) -> None:
    optimizer = renga.optimizers.SGD(0.5).setup(link)
    optimizer.update(lambda: F.sum(link(image())))


def a_file(link: Any, tmp_path: Any) -> None:
    other = make()
    serializers.save_npz(tmp_path / "other.npz", other)
    serializers.load_npz(tmp_path / "other.npz", link)


def copied_parameters(link: Any) -> None:
    link.copyparams(make())


@pytest.mark.parametrize(
    "change",
    [in_place, an_element, another_array, a_view, an_update, copied_parameters],
)
def test_every_write_invalidates_the_cache(change: Callable[[Any], None]):
    link = make()
    before = used(link)
    change(link)
    after = used(link)
    assert (before != after).any()


def test_loading_a_file_invalidates_the_cache(tmp_path):
    link = make()
    before = used(link)
    a_file(link, tmp_path)
    after = used(link)
    assert (before != after).any()


@pytest.mark.parametrize(
    "hold_on",
    [
        lambda W: W.array,
        lambda W: W.array[1:3],
        lambda W: np.asarray(memoryview(W.array)),
        lambda W: F.transpose(W, (1, 0, 2, 3)).array,
        lambda W: renga.Variable(W.array).array,
    ],
    ids=["array", "slice", "memoryview", "transposed", "variable"],
)
def test_writes_by_an_owner_of_the_memory_invalidate_the_cache(hold_on):
    link = make()
    used(link)
    held = hold_on(link.W)
    W = used(link)
    held[1] *= SCALE
    expected = W.copy()
    part = {
        (64, 32, 3, 3): expected[1],
        (2, 32, 3, 3): expected[2],
        (32, 64, 3, 3): expected[:, 1],
    }[held.shape]
    part *= SCALE
    hold(link, expected, image())
    hold(link, expected, image())


def test_memory_of_the_users_own():
    W = np.random.default_rng(1).standard_normal((64, 32, 3, 3), "f")
    link = L.Convolution2D(32, 64, 3, pad=1, nobias=True, initialW=W)
    parameter = renga.Parameter(W)
    link.W.array = W
    for factor in (1, 2, 3):
        W *= factor
        hold(link, W, image())
        hold(link, W, image())
        with renga.no_backprop_mode():
            y = F.convolution_2d(image(), parameter, pad=1).array
        exact = windows.convolution(image().astype("d"), W.astype("d"), pad=1)
        np.testing.assert_allclose(y, exact, rtol=0, atol=1e-5 * np.abs(exact).max())


def test_several_packings_of_one_array():
    # Images of one tile and of many, the transposed convolution and other numbers.
    W = renga.Parameter(np.random.default_rng(1).standard_normal((32, 32, 3, 3), "f"))
    W.array = W.array.copy()
    exact = W.array.astype("d")
    rng = np.random.default_rng(0)
    with renga.no_backprop_mode():
        for _ in range(3):
            for batch, size in ((1, 2), (2, 4), (9, 8)):
                x = rng.standard_normal((batch, 32, size, size), "f")
                for function, expected in (
                    (F.convolution_2d, windows.convolution),
                    (F.deconvolution_2d, windows.deconvolution),
                ):
                    y = function(x, W, pad=1).array
                    true = expected(x.astype("d"), exact, pad=1)
                    np.testing.assert_allclose(
                        y, true, rtol=0, atol=1e-5 * np.abs(true).max()
                    )


@pytest.mark.parametrize("ksize", [4, 3])
def test_strided_phases(ksize):
    rng = np.random.default_rng(1)
    W = renga.Parameter(rng.standard_normal((32, 64, ksize, ksize), "f"))
    W.array = W.array.copy()
    exact = W.array.astype("d")
    x = np.random.default_rng(0).standard_normal((3, 32, 4, 4), "f")
    true = windows.deconvolution(x.astype("d"), exact, stride=2, pad=1)
    with renga.no_backprop_mode():
        for _ in range(4):
            y = F.deconvolution_2d(x, W, stride=2, pad=1).array
            np.testing.assert_allclose(y, true, rtol=0, atol=1e-5 * np.abs(true).max())
