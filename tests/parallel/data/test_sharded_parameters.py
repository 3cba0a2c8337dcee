"""Parameters that the ranks of a node keep once, against training in one process."""

import io
import os

import numpy as np
import pytest

import renga
from renga import _core
from renga.communicators import local
from renga.parallel.data.sharded_parameters.node_parameter import is_shared
from tests.parallel.data.sharded_programs import (
    BATCH,
    PROGRAMS,
    T,
    X,
    make,
    train,
    values,
)


def check(ranks, program, tolerance=1e-9):
    """The program's arrays are those of one process; all ranks' are the same bits."""
    expected = program(None)
    results = ranks(program)
    for result in results:
        assert result.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(result[name], value, rtol=0, atol=tolerance)
            np.testing.assert_array_equal(result[name], results[0][name])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_equals_one_process(some_ranks, program):
    check(some_ranks, program)


def save(model, optimizer):
    file = io.BytesIO()
    renga.serializers.save_npz(file, renga.ChainList(model))
    of_optimizer = io.BytesIO()
    renga.serializers.save_npz(of_optimizer, optimizer)
    return file.getvalue(), of_optimizer.getvalue()


def load(files, model, optimizer):
    model_file, optimizer_file = map(io.BytesIO, files)
    renga.serializers.load_npz(model_file, renga.ChainList(model))
    renga.serializers.load_npz(optimizer_file, optimizer)


@pytest.mark.parametrize("joins", [False, True])
def test_files_are_those_of_one_process(ranks, joins):
    def run(comm):
        model, optimizer = make(comm, rule=renga.optimizers.Adam(0.05))
        train(comm, model, optimizer, steps=[0, 1])
        if joins and comm is not None:
            optimizer.join()
        return save(model, optimizer)

    expected = run(None)
    for files in ranks(run):
        for file, expected_file in zip(files, expected):
            found, wanted = (
                np.load(io.BytesIO(file)),
                np.load(io.BytesIO(expected_file)),
            )
            assert found.files == wanted.files
            for name in wanted.files:
                assert found[name].shape == wanted[name].shape
                np.testing.assert_allclose(found[name], wanted[name], rtol=0, atol=1e-9)


def test_resumes_on_other_numbers_of_ranks(ranks):
    def run(comm, files=None):
        model, optimizer = make(comm, rule=renga.optimizers.Adam(0.05))
        if files is None:
            train(comm, model, optimizer, steps=[0, 1])
            files = save(model, optimizer)
        else:
            load(files, model, optimizer)
        train(comm, model, optimizer, steps=[2, 3])
        return files, values(model)

    files, expected = run(None)
    (files_of_ranks, _), *_ = ranks(run)
    results = [run(None, files_of_ranks), *ranks(run, files)]
    for _, result in results:
        for name, value in expected.items():
            np.testing.assert_allclose(result[name], value, rtol=0, atol=1e-9)


def test_ranks_with_fewer_batches_or_samples(ranks):
    def run(comm):
        model, optimizer = make(comm)
        for i, (x, t) in enumerate(zip(X, T)):
            if comm is not None:
                counts = [(BATCH - 1) if r == 0 else 0 for r in range(comm.size)]
                counts[i % comm.size] += 1
                stop = sum(counts[: comm.rank + 1])
                part = slice(stop - counts[comm.rank], stop)
                x, t = x[part], t[part]
            optimizer.update(model.loss, x, t)
        if comm is None:
            optimizer.update(model.loss, X[0], T[0])
        elif comm.rank == 0:
            optimizer.update(model.loss, X[0], T[0])
            optimizer.join()
        else:
            optimizer.join()
        return values(model)

    check(ranks, run)


def test_a_node_keeps_one_copy(ranks):
    """Also after Python code has had arrays, and while the model is evaluated."""

    def run(comm):
        model, optimizer = make(comm)
        params = list(model.params())
        shares = comm.intra_size == comm.size > 1 and comm.shares_memory()
        simulated = comm.is_simulated
        divided = comm.size > 1 and not (simulated and not shares)

        def loss(x, t):
            assert [is_shared(param) for param in params] == [divided] * 6
            return model.loss(x, t)

        train(comm, model, optimizer, loss, steps=[0, 1])
        values(model)
        for param in params:
            assert param.xp is np and param.device == renga.get_device("@numpy")
            assert not is_shared(param)
        train(comm, model, optimizer, steps=[2, 3])
        model.loss(X[0], T[0]).backward()
        assert [is_shared(param) for param in params] == [divided] * 6
        addresses = _core.addresses(params)
        comm.barrier()  # before this rank's memory may become another one's
        return shares, (os.getpid(), comm.inter_rank), addresses

    results = ranks(run)
    for i, (shares, process, addresses) in enumerate(results):
        for other_shares, other_process, other_addresses in results[:i]:
            # Threads of one process see one memory at one address.
            if process == other_process:
                assert shares == other_shares == (addresses == other_addresses)


def test_an_error_of_one_rank_ends_all():
    def run(comm):
        model, optimizer = make(comm)

        def loss(x, t):
            if optimizer.t == 2 and comm.rank == 1:
                raise ArithmeticError("no loss")
            return model.loss(x, t)

        train(comm, model, optimizer, loss)

    with pytest.raises(ArithmeticError, match="no loss"):
        local.run(run, ranks=2)


@pytest.mark.parametrize("updates", [0, 2])
def test_two_parameters_of_one_array_are_refused(several_ranks, updates):
    def run(comm):
        model, optimizer = make(comm)
        train(comm, model, optimizer, steps=range(updates))
        model.b.W.array = model.a.W.array
        before = values(model)
        with pytest.raises(ValueError, match="share no memory, got tied ones"):
            train(comm, model, optimizer, steps=[2])
        after = values(model)
        assert updates == 0 or all(
            (after[name] == x).all() for name, x in before.items()
        )

    several_ranks(run)
