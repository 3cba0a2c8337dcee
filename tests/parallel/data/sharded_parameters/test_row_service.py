"""Rows that ranks ask each other for."""

import numpy as np

from renga.communicators import local
from renga.parallel.data.sharded_parameters import row_service
from renga.parallel.data.sharded_parameters.row_service import RowService


def make(comm, value):
    """A service, and a row of this rank in it."""
    service = RowService(comm)
    row = service.empty(4000).view("float32")
    row[...] = value
    number = service.add(row)
    comm.barrier()

    def fetched():
        rows = np.full((comm.size, 1000), np.nan, "float32")
        rows[comm.rank] = row
        for work in service.fetch(number, rows):
            work.wait()
        return rows

    return service, row, fetched


def repeated(values):
    return np.repeat(np.array(values, "float32"), 1000).reshape(-1, 1000)


def test_rows_go_once_to_each_node_in_one_request(monkeypatch):
    sent, send = [], row_service._Answers._send

    def noted(answers, xs, dest, tag):
        sent.append((answers._comm.rank, dest, sum(x.nbytes for x in xs)))
        send(answers, xs, dest, tag)

    monkeypatch.setattr(row_service._Answers, "_send", noted)

    def act(comm):
        *_, fetched = make(comm, comm.rank)
        rows = fetched()
        comm.barrier()
        return rows

    for rows in local.run(act, ranks=4, nodes=2):
        np.testing.assert_array_equal(rows, repeated(range(4)))
    between = sorted((a, b) for a, b, n in sent if n == 8000 and a // 2 != b // 2)
    within = sorted((a, b) for a, b, n in sent if n == 8000 and a // 2 == b // 2)
    # Ranks 1 and 2 get the rows of the other node and pass them on.
    assert between == [(1, 2), (2, 1)]
    assert within == [(1, 0), (2, 3)]


def test_a_late_request_leaves_no_old_rows():
    """Rank 1 passes rows on to rank 0, which asks after rank 1 is done with them."""

    def act(comm):
        service, row, fetched = make(comm, comm.rank)
        for is_late in (False, True):
            if (comm.rank == 0) == is_late:
                np.testing.assert_array_equal(fetched(), repeated(range(4)))
                service.forget_others()
            comm.barrier()
        row += 10
        comm.barrier()
        return fetched()

    for rows in local.run(act, ranks=4, nodes=2):
        np.testing.assert_array_equal(rows, repeated(range(10, 14)))


def test_threads_end_with_the_services_of_all_ranks():
    def act(comm):
        service, *_ = make(comm, comm.rank)
        comm.barrier()
        return service._answers._thread

    for thread in local.run(act, ranks=3):
        thread.join(20)
        assert not thread.is_alive()
