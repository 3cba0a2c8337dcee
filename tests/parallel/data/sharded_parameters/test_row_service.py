"""Rows that ranks ask each other for."""

import numpy as np

from renga.communicators import Communicator, local
from renga.parallel.data.sharded_parameters.row_service import RowService


def test_a_row_goes_once_to_each_node(monkeypatch):
    sent = []
    send = Communicator.send

    def noted(comm, x, dest, *args, **kwargs):
        sent.append((comm.rank, dest, x.nbytes))
        return send(comm, x, dest, *args, **kwargs)

    monkeypatch.setattr(Communicator, "send", noted)

    def act(comm):
        service = RowService(comm)
        rows = np.full((comm.size, 1000), np.nan, "float32")
        rows[comm.rank] = comm.rank
        number = service.add(rows[comm.rank].copy())
        comm.barrier()
        for work in service.fetch(number, rows):
            work.wait()
        comm.barrier()
        return rows

    expected = np.repeat(np.arange(4.0), 1000).reshape(4, 1000)
    for rows in local.run(act, ranks=4, nodes=2):
        np.testing.assert_array_equal(rows, expected)
    between = [(a, b) for a, b, size in sent if size == 4000 and a // 2 != b // 2]
    assert sorted(between) == [(0, 2), (1, 3), (2, 0), (3, 1)]
