"""What a file of an object has, for ranks on threads, which may read theirs at once."""

import io

import renga
from renga.serializers.npz import open_archive


def saved(target):
    """The arrays of a file of ``target``, by name."""
    file = io.BytesIO()
    renga.serializers.save_npz(file, target)
    return arrays_in(file)


def arrays_in(file):
    """The arrays of a file in memory, by name.

    ``numpy.load`` raises SystemError where two threads parse headers at once, before
    CPython 3.11.8 (python/cpython#106905).
    """
    file.seek(0)
    with open_archive(file) as archive:
        return dict(archive)
