"""What all kinds of communicators answer about their ranks."""

from __future__ import annotations

import pytest

from renga import _communicators
from renga.communicators import create_communicator, simulated
from renga.communicators.native import Native
from renga.communicators.simulated.collectives import COLLECTIVES


@pytest.mark.parametrize("options", [{}, {"size": 4}])
def test_what_communicators_are_made_of_has_the_methods_of_the_interface(options):
    comm = create_communicator("simulated" if options else "local", **options)
    names = {*vars(Native), *Native.__annotations__}
    public = {name for name in names if not name.startswith("_")}
    assert {"call", "rank"} < public
    assert [name for name in public if not hasattr(comm.native, name)] == []


def test_every_collective_can_be_simulated():
    assert list(COLLECTIVES) == _communicators.collectives()


def test_groups_by_color(ranks):
    def body(comm):
        group = comm.split_by(lambda rank: rank % 2)
        return group.allgather_obj(comm.rank), comm.size

    for rank, (members, size) in enumerate(ranks(body)):
        assert members == list(range(rank % 2, size, 2))


def test_the_network_is_the_same_on_all_ranks(ranks):
    networks = ranks(lambda comm: comm.network())
    latency, seconds_per_byte = networks[0]
    assert latency >= 0 and seconds_per_byte >= 0
    assert networks == [networks[0]] * len(networks)


def test_the_network_of_simulated_ranks_is_that_of_their_machine():
    machine = {"latency": 1e-3, "bandwidth": 1e6}
    machine |= {"node_latency": 1e-5, "node_bandwidth": 1e8}
    far = create_communicator("simulated", size=4, intra_size=2, **machine)
    near = create_communicator("simulated", size=4, intra_size=4, **machine)
    assert far.network() == (1e-3, 1e-6)
    assert near.network() == (1e-5, 1e-8)


def test_clocks_go_on(ranks):
    def body(comm):
        begin = comm.clock
        comm.barrier()
        return begin, comm.clock

    for begin, end in ranks(body):
        assert begin < end
    machine = simulated.Machine(latency=0.5)
    times = simulated.run(body, 2, machine, seconds_of=lambda rank, task: 0.0).results
    assert times == [(0.0, 0.5)] * 2
