"""One check for every link: values, dtypes, gradients, files, copies, devices."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy

import renga
from renga import gradient_check
from renga.serializers import DictionarySerializer, NpzDeserializer
from tests.catalogue.links.row import Case
from tests.python.functions.cases.function_check import strided

HALF = {"atol": 3e-2, "rtol": 3e-2}


def tuple_of(y: Any) -> tuple[Any, ...]:
    return tuple(y) if isinstance(y, (tuple, list)) else (y,)


def arrays_of(ys: Any) -> list[Any]:
    return [renga.as_array(y) for y in tuple_of(ys)]


def fill(link: renga.Link, keep: tuple[str, ...] = ()) -> None:
    """Random values for every parameter, biases too; the same at every call."""
    rng = numpy.random.default_rng(1)
    for path, param in link.namedparams():
        values = rng.normal(scale=0.7, size=param.shape)
        if path not in keep:
            param.array[...] = values


def as_dtype(inputs: tuple[Any, ...], dtype: Any) -> list[Any]:
    def convert(x: Any) -> Any:
        if isinstance(x, list):
            return [convert(v) for v in x]
        floating = isinstance(x, numpy.ndarray) and x.dtype.kind == "f"
        return x.astype(dtype) if floating else x

    return [convert(x) for x in inputs]


def check(case: Case) -> None:
    """All of it; ``case.inputs`` are of float64 or of integers."""
    with renga.using_config("dtype", numpy.dtype("d")):
        check_doubles(case)
        if case.gradients:
            check_gradients(case)
    if case.half:
        with renga.using_config("dtype", numpy.dtype("e")):
            check_half(case)


def reference_of(case: Case, link: renga.Link) -> list[Any]:
    params = {path: p.array.astype("d") for path, p in link.namedparams()}
    return arrays_of(case.reference(params, *case.inputs))


def check_doubles(case: Case) -> None:
    link = case.make()
    fill(link, case.keep)
    expected = reference_of(case, link)

    def values_of(other: renga.Link, inputs: Any = case.inputs) -> list[Any]:
        return arrays_of(case.call(other, *inputs))

    # Links with running statistics or a state change in a call: copies are taken first.
    others, another = copies(link), copy.deepcopy(link)
    files = saved(link)
    actual = values_of(link)
    assert len(actual) == len(expected)
    for y, e in zip(actual, expected):
        assert y.dtype == numpy.float64 and y.shape == numpy.shape(e)
        numpy.testing.assert_allclose(y, e, rtol=1e-7, atol=1e-9)
    for other in others:
        equal(values_of(other), actual)
    with_gaps = values_of(another, [strided(x) for x in case.inputs])
    for y, e in zip(with_gaps, actual):
        numpy.testing.assert_allclose(y, e, rtol=1e-9, atol=1e-12)
    for make in (case.make, case.lazy):
        if make is not None:
            equal(values_of(loaded(make(), files)), actual)
    if case.lazy is not None:
        check_lazy(case.lazy, link, values_of)


def equal(actual: list[Any], expected: list[Any]) -> None:
    for y, e in zip(actual, expected):
        numpy.testing.assert_allclose(y, e, rtol=1e-12, atol=1e-14)


def copies(link: renga.Link) -> list[renga.Link]:
    shared, copied, drawn = (link.copy(mode) for mode in ("share", "copy", "init"))
    for a, b, c, d in zip(*(x.params() for x in (link, shared, copied, drawn))):
        assert b is not a and numpy.shares_memory(a.array, b.array)
        assert not numpy.shares_memory(a.array, c.array)
        assert d.shape == a.shape and d.dtype == a.dtype
        assert not numpy.shares_memory(a.array, d.array)
    moved = copy.deepcopy(link)
    assert moved.to_device("@numpy") is moved
    return [copied, moved, pickle.loads(pickle.dumps(link)), copy.deepcopy(link)]


def saved(link: renga.Link) -> dict[str, Any]:
    serializer = DictionarySerializer()
    link.serialize(serializer)
    return copy.deepcopy(serializer.target)


def loaded(link: renga.Link, files: dict[str, Any]) -> renga.Link:
    link.serialize(NpzDeserializer(copy.deepcopy(files)))
    return link


def check_lazy(make: Any, like: renga.Link, call: Any) -> None:
    link = make()
    assert not all(p.is_initialized for p in link.params())
    call(link)
    given = {path: p.shape for path, p in link.namedparams()}
    assert given == {path: p.shape for path, p in like.namedparams()}


def check_half(case: Case) -> None:
    link = case.make()
    fill(link, case.keep)
    ys = arrays_of(case.call(link, *as_dtype(case.inputs, "e")))
    for y, e in zip(ys, reference_of(case, link)):
        assert y.dtype == numpy.float16
        numpy.testing.assert_allclose(y, e, **HALF)


def check_gradients(case: Case) -> None:
    """Two orders, through the inputs and through every parameter."""
    link = case.make()
    fill(link, case.keep)
    rng = numpy.random.default_rng(7)
    params = tuple(link.params())
    floats = [k for k, x in enumerate(case.inputs) if is_floats(x)]
    arrays = tuple(case.inputs[k] for k in floats)

    def function(*xs: Any) -> tuple[Any, ...]:
        inputs = list(case.inputs)
        for k, x in zip(floats, xs):
            inputs[k] = x
        return tuple_of(case.call(link, *inputs))

    def curved(*xs: Any) -> tuple[Any, ...]:
        """Even a linear function has a second derivative then."""
        return tuple(y * y for y in function(*xs))

    gys = tuple(rng.normal(size=y.shape) for y in function(*arrays))
    ggxs = tuple(rng.normal(size=x.shape) for x in arrays)
    ggps = tuple(rng.normal(size=p.shape) for p in params)
    tolerance = {"eps": 1e-5, "atol": 1e-5, "rtol": 1e-4}
    gradient_check.check_backward(function, arrays, gys, params, **tolerance)
    gradient_check.check_double_backward(
        curved, arrays, gys, ggxs, params, ggps, **tolerance
    )


def is_floats(x: Any) -> bool:
    return isinstance(x, numpy.ndarray) and x.dtype.kind == "f"
