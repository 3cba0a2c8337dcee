"""More elements than fit into an int."""

import numpy as np
import pytest

from renga.communicators import local

LARGE = 5 << 29
PLACES = [0, 1 << 30, (1 << 31) + 5, LARGE - 1]


@pytest.mark.parametrize("shared_memory", [True, False])
def test_send_and_all_reduce_of_2_5_gib(shared_memory):
    def act(comm):
        x = np.zeros(LARGE, np.uint8)
        if comm.rank == 0:
            x[PLACES] = [1, 2, 3, 4]
            comm.send(x, 1, tag=0)
        else:
            comm.recv(0, tag=0, out=x)
        comm.all_reduce(x, out=x)
        assert x[PLACES].tolist() == [2, 4, 6, 8]
        assert np.count_nonzero(x) == 4

    local.run(act, ranks=2, shared_memory=shared_memory)
