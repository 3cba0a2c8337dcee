"""What links save when they are created, and their ``str``.

The calls are those of the catalogue's rows (``created``). The shape and the sum of
magnitudes of each array are recorded, and None for what is not initialized.
"""

import json
from functools import partial
from pathlib import Path

import chainer.links as L
import numpy as np
from chainer.serializers import DictionarySerializer


def calls():
    """Where renga is not installed, those that are recorded already."""
    try:
        from tests.catalogue import LINKS
    except ImportError:
        folder = Path(__file__).parents[1] / "recorded"
        return list(json.loads((folder / "created_links.json").read_text()))
    return [call for row in LINKS.values() for call in row.created]


def created(call):
    link = eval(call, {"L": L})
    serializer = DictionarySerializer()
    link.serialize(serializer)
    return {"text": str(link), "arrays": {k: digest(v) for k, v in saved(serializer)}}


def saved(serializer):
    return sorted(serializer.target.items())


def digest(value):
    if value is None or np.asarray(value).dtype == object:
        return None
    return [list(np.shape(value)), float(abs(np.asarray(value, "d")).sum())]


GENERATED = {call: partial(created, call) for call in calls()}
