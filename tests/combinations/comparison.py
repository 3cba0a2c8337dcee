"""Whether a row on the ranks of a column gives what its reference gives."""

from __future__ import annotations

import functools
import io
import re
import zipfile

import numpy

from renga.communicators import RankFailed


def check(row, column):
    """Runs a cell that has to be equal.

    Raises:
        AssertionError: it is not.
    """
    if row.raises is not None:
        check_raises(row, column)
        return
    found = column.run(row)
    expected = column.expected(row)
    tolerance = column.adapted(row).tolerance
    if column.is_exact_on(row):
        check_equal(found, expected, column, tolerance)
    else:
        check_agreement(found)
        check_unmoved(found, expected, tolerance)


def check_refused(row, column, pattern):
    """Runs a cell that has to be refused, by an error with a text of this pattern."""
    failures = []
    try:
        column.run(row, failures)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        assert re.search(pattern, text, re.DOTALL), f"refused otherwise: {text}"
        changed = changed_in_refused_step(failures)
        assert not changed, f"refused after parameters had changed: {changed}"
        return
    raise AssertionError(f"expected an error like {pattern!r}, got none")


def changed_in_refused_step(failures):
    """Those of failures in which parameters have changed.

    Without a flush a rank may still be in an earlier step, which it has every right to
    update in, when it hears of the refusal.
    """
    own = [each.step for each in failures if not isinstance(each.error, RankFailed)]
    refused = min(own, default=0)
    return [each for each in failures if each.changed and each.step >= refused]


def check_raises(row, column):
    """Runs a cell whose exception has to arrive."""
    try:
        column.run(row)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        assert re.search(row.raises, text, re.DOTALL), f"raised otherwise: {text}"
        return
    raise AssertionError(f"expected an error like {row.raises!r}, got none")


def check_equal(found, expected, column, tolerance):
    """Each rank has what its replica has, and equal ranks the same bits."""
    for rank, files in enumerate(found.files):
        replica = column.replica(rank, len(found.files))
        replica = min(replica, len(expected.files) - 1)
        wanted = expected.files[replica]
        assert files.keys() == wanted.keys()
        for name in wanted:
            more = column.saves_more and name.startswith("optimizer")
            where = f"rank {rank}, {name}"
            check_file(files[name], wanted[name], tolerance, more, where)
    for name in expected.files[0]:
        check_bits(found, expected, column, name)
    if len(expected.files) < column.replicas(column.ranks):
        return  # the ranks have observed their own samples
    for rank, observed in enumerate(found.observed[: column.ranks]):
        replica = min(column.replica(rank, len(found.files)), len(expected.files) - 1)
        wanted = expected.observed[replica]
        same = f"observations of rank {rank}"
        numpy.testing.assert_allclose(
            observed, wanted, tolerance, tolerance, True, same
        )


def check_close(found, wanted, tolerance, what):
    """That numbers are near to others, relative to those above 1."""
    numpy.testing.assert_allclose(found, wanted, tolerance, tolerance, True, what)


@functools.lru_cache(64)  # several times the files of a cell
def arrays(file):
    """The arrays of a file by key; nobody changes them."""
    with zipfile.ZipFile(io.BytesIO(file)) as members:
        names = members.namelist()
        return {name.removesuffix(".npy"): array(members.read(name)) for name in names}


@functools.lru_cache(4096)  # most arrays of a rank's file are in another one, too
def array(member):
    """The array of a member of a file: one object for equal bytes."""
    return numpy.lib.format.read_array(io.BytesIO(member), allow_pickle=True)


def check_file(found, wanted, tolerance, more, where):
    """That a file has the keys and numbers of another one, and maybe more."""
    found, wanted = arrays(found), arrays(wanted)
    missing = sorted(wanted.keys() - found.keys())
    extra = [] if more else sorted(found.keys() - wanted.keys())
    assert not missing and not extra, f"{where}: without {missing}, with {extra}"
    for key, x in wanted.items():
        y = found[key]
        if y is x:
            continue
        assert (y.shape, y.dtype) == (x.shape, x.dtype), (
            f"{where}, {key}: expected {x.dtype} {x.shape}, got {y.dtype} {y.shape}"
        )
        if x.dtype.kind in "fc":
            what = f"{where}, {key}"
            check_close(y, x, tolerance, what)
        else:
            assert (y == x).all(), f"{where}, {key}: expected {x}, got {y}"


def check_bits(found, expected, column, name):
    """That ranks have the same bits where the replicas of the reference do."""
    wanted = [arrays(files[name]) for files in expected.files]
    ranks = [arrays(files[name]) for files in found.files]
    for rank, own in enumerate(ranks[1:], 1):
        replica = min(column.replica(rank, len(ranks)), len(wanted) - 1)
        for key, x in wanted[0].items():
            if same_bits(wanted[replica][key], x):
                message = f"ranks 0 and {rank} differ in {name}, {key}"
                assert same_bits(own[key], ranks[0][key]), message


def check_agreement(found):
    """That models are the same on all ranks, to the bit, and finite."""
    models = [
        {(name, key): x for name in files for key, x in arrays(files[name]).items()}
        for files in found.files
    ]
    for rank, own in enumerate(models):
        for (name, key), x in own.items():
            if name.startswith("model") and "norm/" not in key:
                assert numpy.isfinite(x).all(), f"rank {rank}, {key}: {x}"
                message = f"ranks 0 and {rank} differ in {name}, {key}"
                assert same_bits(x, models[0][name, key]), message


def check_unmoved(found, expected, tolerance):
    """That parameters are as before where one process does not move them."""
    wanted = arrays(expected.files[0]["model 0"])
    for rank, files in enumerate(found.files):
        own = arrays(files["model 0"])
        for key in sorted(expected.unmoved & wanted.keys()):
            check_close(own[key], wanted[key], tolerance, f"rank {rank}, {key}")


def same_bits(x, y):
    return x is y or (
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    )
