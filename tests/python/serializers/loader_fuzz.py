"""Damages files in many ways and loads them: a script and a function.

Either the loaded values equal the saved ones bit by bit, or a documented exception is
raised and the target is unchanged. Usage:

    python -m tests.python.serializers.loader_fuzz [count] [seed]
"""

from __future__ import annotations

import collections
import contextlib
import functools
import gzip
import io
import resource
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from typing import Any, Callable, NamedTuple

import numpy

import renga
import renga.links as L
from renga import datasets, iterators, optimizers, serializers, training
from renga.datasets.downloaded import idx
from renga.links.caffe import CaffeFunction
from renga.training import extensions

# FileFormatError is a ValueError; RuntimeError: a layer of Caffe's is not supported.
DOCUMENTED = (ValueError, KeyError, TypeError)
SIZES = (0, 1, 2**15, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
SECONDS = 10  # for one file
MEGABYTES = 400  # more than at the start


class Format(NamedTuple):
    """Two valid files, how to load one, and the resulting values of the target."""

    files: tuple[bytes, bytes]
    load: Callable[[bytes], Any]
    state: Callable[[], dict[str, Any]]
    errors: tuple[type[Exception], ...] = DOCUMENTED
    # Whether checksums in the file detect damage.
    checked: bool = True
    # Damages the data before checksums are computed, if the file can be rebuilt.
    forge: Callable[[bytes, numpy.random.RandomState], bytes] | None = None
    # Reads the arrays of a file by another library.
    reread: Callable[[bytes], dict[str, numpy.ndarray]] | None = None


def damaged(data: bytes, other: bytes, rng: numpy.random.RandomState) -> bytes:
    """``data`` with bits turned, cut, spliced with ``other``, or with other sizes."""
    changed = bytearray(data)
    offset = rng.randint(len(changed))
    kind = rng.randint(6)
    if kind == 0:
        for _ in range(rng.randint(1, 9)):
            changed[rng.randint(len(changed))] ^= 1 << rng.randint(8)
    elif kind == 1:
        del changed[offset:]
    elif kind == 2:
        length = rng.randint(1, 129)
        start = offset if rng.randint(2) else rng.randint(len(other))
        piece = other[start : start + length]
        changed[offset : offset + len(piece)] = piece
    elif kind == 3:
        size = (2, 4, 8)[rng.randint(3)]
        order = ("little", "big")[rng.randint(2)]
        claim = SIZES[rng.randint(len(SIZES))] % 2 ** (8 * size)
        changed[offset : offset + size] = claim.to_bytes(size, order)
    elif kind == 4:
        digits = [i for i, byte in enumerate(changed) if byte in b"0123456789"]
        first = rng.randint(len(digits)) if digits else 0
        for i in digits[first : first + rng.randint(1, 9)]:
            changed[i] = b"9870"[rng.randint(4)]
    elif rng.randint(2):
        del changed[offset : offset + rng.randint(1, 9)]
    else:
        changed[offset:offset] = rng.bytes(rng.randint(1, 9))
    return bytes(changed)


def forged_npz(data: bytes, rng: numpy.random.RandomState) -> bytes:
    """An archive of a damaged array with correct checksums."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", 8) as new:
        names = old.namelist()
        chosen = names[rng.randint(len(names))]
        for name in names:
            content = old.read(name)
            if name == chosen:
                content = damaged(content, content, rng)
            new.writestr(name, content)
    return out.getvalue()


def forged_safetensors(data: bytes, rng: numpy.random.RandomState) -> bytes:
    """A file with a damaged header and without a checksum."""
    length = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + length].replace(b"renga.crc32", b"nothing")
    header = damaged(header, header, rng)
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


def forged_idx(data: bytes, rng: numpy.random.RandomState) -> bytes:
    content = gzip.decompress(data)
    return gzip.compress(damaged(content, content, rng))


def arrays_of(obj: Any) -> dict[str, Any]:
    serializer = serializers.DictionarySerializer()
    serializer.save(obj)
    return {
        key: (array.shape, array.dtype, array.tobytes())
        for key, array in serializer.target.items()
        if "elapsed" not in key and "random_state" not in key
    }


def model(seed: int) -> renga.Chain:
    rng = numpy.random.RandomState(seed)
    chain = renga.Chain(l=L.Linear(4, 3), bn=L.BatchNormalization(3))
    for param in chain.params():
        param.array[...] = rng.normal(size=param.shape)
    chain.bn.avg_mean[...] = rng.normal(size=3)
    chain.bn.N = seed
    return chain


def trainer(seed: int, folder: str = "") -> training.Trainer:
    net = L.Classifier(L.Linear(4, 3))
    x = numpy.random.RandomState(seed).normal(size=(8, 4)).astype("f")
    iterator = iterators.SerialIterator(datasets.TupleDataset(x, [0, 1] * 4), 3)
    optimizer = optimizers.Adam().setup(net)
    updater = training.StandardUpdater(iterator, optimizer)
    loop = training.Trainer(updater, (seed, "iteration"), out=folder)
    loop.extend(extensions.LogReport(trigger=(2, "iteration")))
    loop.run()
    return loop


def of_objects(
    make: Callable[[int], Any], save: Any, load: Any, **options: Any
) -> Format:
    files = []
    for seed in (1, 2):
        out = io.BytesIO()
        save(out, make(seed))
        files.append(out.getvalue())
    target = make(3)
    return Format(
        (files[0], files[1]),
        lambda data: load(io.BytesIO(data), target),
        lambda: arrays_of(target),
        **options,
    )


def _stored(file: Any, obj: Any) -> None:
    serializers.save_npz(file, obj, compression=False)


def _caffe() -> Format:
    from tests.links.cases import caffemodel
    from tests.links.cases.caffemodel import layer, message

    def net(seed: int) -> bytes:
        W = numpy.random.RandomState(seed).normal(size=(6, 4, 3, 3))
        convolution = message((1, 6), (3, 1), (4, 3), (6, 2))
        return b"".join(
            [
                layer("Convolution", "c", blobs=(W, W[:, 0, 0, 0]), p106=convolution),
                layer("BatchNorm", "n", blobs=(W[0, 0, 0], W[0, 0, 1] ** 2, [2.0])),
                layer(
                    "Scale", "s", blobs=(W[0, 0, 0], W[0, 0, 1]), p142=message((4, 1))
                ),
                layer("Pooling", "p", p121=message((1, 0), (2, 2), (3, 2))),
                caffemodel.old_layer(
                    14, "f", blobs=(W[0, :, 0],), p17=message((1, 4), (2, 0))
                ),
                layer(
                    "InnerProduct",
                    "i",
                    blobs=(W[0, :, 0],),
                    p117=message((1, 4), (2, 0)),
                ),
            ]
        )

    errors = (serializers.FileFormatError, RuntimeError)
    load = lambda data: CaffeFunction(io.BytesIO(data))  # noqa: E731
    return Format((net(1), net(2)), load, dict, errors, checked=False)


def _idx(path: str) -> Format:
    def file(seed: int) -> bytes:
        pixels = numpy.random.RandomState(seed).bytes(5 * 7 * 7)
        return gzip.compress(struct.pack(">4i", 0x803, 5, 7, 7) + pixels)

    found: dict[str, Any] = {}

    def load(data: bytes) -> None:
        found.clear()
        with open(path, "wb") as out:
            out.write(data)
        found["x"] = idx._read_idx(path).tobytes()

    return Format(
        (file(1), file(2)),
        load,
        lambda: dict(found),
        (serializers.FileFormatError,),
        forge=forged_idx,
    )


def _lists(path: str) -> Format:
    def load(data: bytes) -> None:
        with open(path, "wb") as out:
            out.write(data)
        datasets.LabeledImageDataset(path)

    files = b"a.png 1\nb b.png 20\n", "連歌.png 3\n".encode()
    return Format(files, load, dict, (serializers.FileFormatError,), checked=False)


def formats(folder: str) -> dict[str, Format]:
    """All formats; those whose libraries are missing are left out."""
    S = serializers
    both = {
        "npz": of_objects(
            model, S.save_npz, S.load_npz, forge=forged_npz, reread=_by_numpy
        ),
        "npz stored": of_objects(model, _stored, S.load_npz),
        "snapshot": of_objects(
            functools.partial(trainer, folder=folder), S.save_npz, S.load_npz
        ),
        "idx": _idx(folder + "/idx.gz"),
        "list": _lists(folder + "/list"),
        "caffemodel": _caffe(),
    }
    with contextlib.suppress(ImportError):
        both["safetensors"] = of_objects(
            model,
            S.save_safetensors,
            S.load_safetensors,
            forge=forged_safetensors,
            reread=_by_safetensors,
        )
    with contextlib.suppress(RuntimeError):  # no h5py
        both["hdf5"] = of_objects(model, S.save_hdf5, S.load_hdf5)
    return both


def run(count: int = 10_000, seed: int = 0) -> dict[str, int]:
    """Loads ``count`` damaged files; returns how many were valid, refused or forged.

    Raises:
        AssertionError: a check failed; the message has the format and the number.
    """
    outcomes: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = formats(folder)
        saved = {name: _saved(kind) for name, kind in kinds.items()}
        start = _megabytes()
        for i in range(count):
            name = list(kinds)[i % len(kinds)]
            outcome = _one(
                kinds[name], saved[name], seed * 1_000_003 + i, f"{name} {i}"
            )
            outcomes[outcome] += 1
            grown = _megabytes() - start
            assert grown < MEGABYTES, f"{name} {i}: {grown} MB"
    return dict(outcomes)


def _saved(kind: Format) -> list[dict[str, Any]]:
    states = []
    for data in kind.files:
        kind.load(data)
        states.append(kind.state())
    return states


def _one(kind: Format, saved: list[dict[str, Any]], seed: int, name: str) -> str:
    rng = numpy.random.RandomState(seed % 2**32)
    which = rng.randint(2)
    forged = kind.forge is not None and rng.randint(4) == 0
    if forged:
        data = kind.forge(kind.files[which], rng)  # type: ignore[misc]
    else:
        data = damaged(kind.files[which], kind.files[1 - which], rng)
    before, start = kind.state(), time.perf_counter()
    try:
        kind.load(data)
    except kind.errors as error:
        assert str(error), f"{name}: {error!r} says nothing"
        after = kind.state()
        changed = [
            key for key in {**before, **after} if after.get(key) != before.get(key)
        ]
        if after and changed:
            raise AssertionError(f"{name}: {changed}, in spite of {error!r}") from error
        return "refused"
    except BaseException as error:
        raise AssertionError(f"{name}: {error!r}") from error
    finally:
        seconds = time.perf_counter() - start
        assert seconds < SECONDS, f"{name}: {seconds} s"
    if forged:
        if kind.reread is not None:
            _compare(kind.state(), kind.reread(data), name)
        return "forged"
    if _has_no_checksum(data) and kind.reread is not None:
        _compare(kind.state(), kind.reread(data), name)
        return "not checked"
    if not kind.checked:
        return "not checked"
    for key, value in kind.state().items():
        assert value in [state.get(key) for state in saved], f"{name}: {key} is wrong"
    return "saved"


def _compare(
    state: dict[str, Any], arrays: dict[str, numpy.ndarray], name: str
) -> None:
    """Checks that a target has the values that another library reads."""
    for key, (shape, dtype, data) in state.items():
        expected = arrays[key].astype(dtype)
        assert expected.shape == shape, f"{name}: the shape of {key}"
        assert expected.tobytes() == data, f"{name}: {key} is not what is stored"


def _by_numpy(data: bytes) -> dict[str, numpy.ndarray]:
    with numpy.load(io.BytesIO(data), allow_pickle=False) as archive:
        return dict(archive)


def _by_safetensors(data: bytes) -> dict[str, numpy.ndarray]:
    from safetensors.numpy import load

    return {key.replace(".", "/"): array for key, array in load(data).items()}


def _has_no_checksum(data: bytes) -> bool:
    """Whether the damage removed the checksum of a safetensors file."""
    is_safetensors = b"data_offsets" in data
    return is_safetensors and b'"renga.crc32":"' not in data


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(run(*map(int, sys.argv[1:])))
