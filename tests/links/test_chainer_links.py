"""Files that Chainer has written are loaded.

Their names and shapes are those that Chainer recorded for links that it created:
``tests/chainer_outcomes/cases/created_links.py``, whose calls are those of the
catalogue's rows (``created``).
"""

import json
from pathlib import Path

import numpy
import pytest

import renga.links as L
from renga.serializers import DictionarySerializer, NpzDeserializer
from tests.catalogue import LINKS

FILE = Path(__file__).parents[1] / "chainer_outcomes/recorded/created_links.json"
RECORDED = {
    call: found["value"] for call, found in json.loads(FILE.read_text()).items()
}


def test_every_call_is_recorded():
    assert set(RECORDED) == {call for row in LINKS.values() for call in row.created}


@pytest.mark.parametrize("call", RECORDED)
def test_chainers_file_is_loaded(call):
    rng = numpy.random.default_rng(0)
    file = {
        # N counts batches; all else are floats.
        name: numpy.array(5) if name.endswith("N") else rng.normal(size=what[0])
        for name, what in RECORDED[call]["arrays"].items()
        if what is not None
    }
    link = eval(call, {"L": L})
    link.serialize(NpzDeserializer(file, strict=False))
    saved = DictionarySerializer()
    link.serialize(saved)
    assert file.keys() <= saved.target.keys()
    for name, value in file.items():
        numpy.testing.assert_array_equal(saved.target[name], value.astype("f"))
