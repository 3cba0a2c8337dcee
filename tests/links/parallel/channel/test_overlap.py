"""When batches of channel-parallel links are cut into chunks."""

import pytest

from renga.communicators import simulated
from renga.links.parallel.channel import overlap
from renga.parallel.redistribute.cost import StepCost


@pytest.mark.parametrize(
    ("intra_size", "cores", "communication", "chunks"),
    [
        # Cores that compute copy, too, unless there are as many again.
        (4, 7, 1.0, 0),
        (4, 8, 1.0, 4),
        (2, 3, 1.0, 4),  # other nodes do not share memory
        # Chunks take time, too: no less than a quarter of what is computed is hidden.
        (2, 3, 0.26, 4),
        (2, 3, 0.25, 1),
    ],
)
def test_chunks(intra_size, cores, communication, chunks, monkeypatch):
    monkeypatch.setattr(overlap, "_CORES", cores)
    comm = simulated.connect(4, intra_size=intra_size)
    cost = StepCost(communication, 1.0, 0.0)
    assert overlap.number_of_chunks(comm, cost) == chunks
