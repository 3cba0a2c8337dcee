"""Links are initialized, named and saved as in Chainer.

``chainer_links.json`` was written by Chainer 7.8.1 on NumPy: after
``numpy.random.seed(0)`` each link was created. The file has the name, the shape and the
sum of the absolute values of everything that it saves (null for uninitialized
arrays), and its ``str``.
"""

import json
from pathlib import Path

import numpy
import pytest

import renga.links as L
from renga.serializers import DictionarySerializer, NpzDeserializer

LINKS = json.loads((Path(__file__).parent / "chainer_links.json").read_text())


def tuples(x):
    return tuple(map(tuples, x)) if isinstance(x, list) else x


def make(case):
    numpy.random.seed(0)
    return getattr(L, case["link"])(*map(tuples, case["args"]), **case["options"])


def saved(link):
    serializer = DictionarySerializer()
    link.serialize(serializer)
    return serializer.target


@pytest.mark.parametrize("case", LINKS, ids=lambda c: f"{c['link']}{c['args']}")
def test_link(case):
    link = make(case)
    assert str(link) == case["text"]
    values = saved(link)
    assert set(values) == set(case["arrays"])
    for name, expected in case["arrays"].items():
        if expected is None:
            assert values[name] is None or values[name].dtype == object
            continue
        shape, total = expected
        value = numpy.asarray(values[name])
        assert list(value.shape) == shape
        numpy.testing.assert_allclose(abs(value).sum(), total, rtol=2e-5)


@pytest.mark.parametrize("case", LINKS, ids=lambda c: f"{c['link']}{c['args']}")
def test_chainers_file_is_loaded(case):
    rng = numpy.random.default_rng(0)
    file = {
        # N counts batches; all else are floats.
        name: numpy.array(5) if name.endswith("N") else rng.normal(size=what[0])
        for name, what in case["arrays"].items()
        if what is not None
    }
    link = make(case)
    link.serialize(NpzDeserializer(file, strict=False))
    for name, value in saved(link).items():
        if name in file:
            numpy.testing.assert_array_equal(value, file[name].astype("f"))
