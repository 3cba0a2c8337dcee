"""Weights that PyTorch has named."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import IO, Any

import numpy

from renga.core.link import Link
from renga.core.link.distinct_params import distinct_params
from renga.core.link.own_values import own_persistent
from renga.serializers.files import File, FileFormatError, name_of, open_to_read
from renga.serializers.npz import DictionarySerializer, NpzDeserializer
from renga.serializers.tensor_file import read_entries

# PyTorch's names are called so here: a link has one of the names.
_NAMES = {
    "weight": ("W", "gamma"),
    "bias": ("b", "beta"),
    "running_mean": ("avg_mean",),
    "running_var": ("avg_var",),
    "num_batches_tracked": ("N",),
    "in_proj_weight": ("in_proj/W",),
    "in_proj_bias": ("in_proj/b",),
}
# The attributes in which PyTorch's wrappers keep a model.
_WRAPPERS = {"module": "DistributedDataParallel", "_orig_mod": "torch.compile"}
# The first bytes of what torch.save writes, since version 1.6 and before.
_ZIP, _PICKLE = b"PK\x03\x04", b"\x80\x02\x8a\nl\xfc\x9cF"


def load_torch_state_dict(link: Link, file: File) -> None:
    """Load a link from a ``state_dict`` of PyTorch in a safetensors file.

    ``layer1.0.conv1.weight`` is ``/layer1/0/conv1/W`` or ``…/gamma``, and ``bias``,
    ``running_mean``, ``running_var``, ``in_proj_weight`` and ``in_proj_bias`` are
    found likewise; other names are the same here, and numbers are positions. A link
    whose names differ has the method ``torch_state(state)``, which takes a dictionary
    of arrays and returns one with the names of the link's parts. The file needs one
    name of a tied parameter or of a link with several names. If loading fails, ``link``
    is unchanged.

    In PyTorch ``safetensors.torch.save_file(model.state_dict(), file)`` writes such a
    file.

    Raises:
        KeyError: the link lacks a name of the file, or the file one of the link's.
        FileFormatError: the file is no safetensors file or is damaged, or it has
            different arrays for the names of a tied parameter.
        ValueError: shapes differ.
        OSError: the file cannot be read.
    """
    with open_to_read(file) as opened:
        _refuse_pickles(opened, file)
        entries = read_entries(opened, file)
        state = {name: numpy.asarray(entry.read()) for name, entry in entries.items()}
    if hasattr(link, "torch_state"):
        state = link.torch_state(state)
    serializer = DictionarySerializer()
    serializer.save(link)
    known = serializer.target
    found: dict[str, numpy.ndarray] = {}
    for name, array in state.items():
        path = next((p for p in _paths(link, name) if p in known), None)
        if path is not None:
            if path in found:
                raise FileFormatError(
                    f"load_torch_state_dict: expected one array for {path}, got two"
                )
            found[path] = array
        elif not name.endswith("num_batches_tracked"):
            raise KeyError(
                f"load_torch_state_dict: the link has nothing like {name}{_hint(state)}"
            )
    _share_tied(link, known, found)
    missing = [name for name in known if name not in found]
    # Files of old versions do not count the batches.
    counts = {name: known[name] for name in missing if _is_count(name)}
    if len(counts) < len(missing):
        lacking = next(name for name in missing if name not in counts)
        raise KeyError(f"load_torch_state_dict: the file has nothing like {lacking}")
    NpzDeserializer({**found, **counts}, file=file).load(link)


def _refuse_pickles(opened: IO[bytes], file: File) -> None:
    opened.seek(0)
    if opened.read(len(_PICKLE)).startswith((_ZIP, _PICKLE)):
        raise FileFormatError(
            f"load_torch_state_dict: expected a safetensors file in {name_of(file)!r}, "
            "got one of torch.save, whose pickles are never run: write it in PyTorch "
            "with safetensors.torch.save_file(model.state_dict(), file)"
        )


def _hint(state: Iterable[str]) -> str:
    """What to save instead, if a wrapper has put its prefix before all names."""
    for prefix, wrapper in _WRAPPERS.items():
        if all(name.startswith(f"{prefix}.") for name in state):
            return (
                f"; all names begin with {prefix!r}, which {wrapper} adds: save "
                f"model.{prefix}.state_dict()"
            )
    return ""


def _share_tied(
    link: Any, known: Container[str], found: dict[str, numpy.ndarray]
) -> None:
    """Gives all names of a parameter or link the array that one of them has."""
    for names in _tied_names(link):
        given = [name for name in names if name in found]
        for name in given[1:]:
            if not numpy.array_equal(found[given[0]], found[name], equal_nan=True):
                raise FileFormatError(
                    f"load_torch_state_dict: expected one array for {given[0]} and "
                    f"{name}, which are tied in the link, got two"
                )
        for name in names:
            if given and name in known:
                found[name] = found[given[0]]


def _tied_names(link: Any) -> Iterator[list[str]]:
    for each in distinct_params(link):
        if each.is_shared:
            yield [name[1:] for name in each.names]
    paths: dict[int, list[str]] = {}
    for path, child in link.namedlinks():
        paths.setdefault(id(child), []).append(path.strip("/"))
    for child in {id(child): child for child in link.links()}.values():
        if len(paths[id(child)]) > 1:
            for name in own_persistent(child):
                yield [f"{path}/{name}" for path in paths[id(child)]]


def _paths(link: Any, name: str) -> Iterator[str]:
    """What a name may be called here."""
    *parts, last = name.split(".")
    prefix = []
    for part in parts:
        link = _child(link, part)
        # A Sequential's names are not the positions of its layers.
        prefix.append(getattr(link, "name", None) or part)
    for own in _NAMES.get(last, (last,)):
        yield "/".join([*prefix, own])


def _child(link: Any, part: str) -> Any:
    """The child with a name or, in a list, at a position; None if there is none."""
    if not part.isdigit() or hasattr(link, part):
        return getattr(link, part, None)
    try:
        return link[int(part)]
    except (IndexError, KeyError, TypeError):
        return None


def _is_count(name: str) -> bool:
    return name == "N" or name.endswith("/N")
