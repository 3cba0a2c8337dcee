"""Ranks that are threads: failures, missing ranks, mismatched calls."""

import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from renga.communicators import RankFailed, create_communicator, local, simulated
from renga.utils.type_check import InvalidType


def test_first_exception_is_raised_with_its_rank():
    heard = []

    def act(comm):
        if comm.rank == 2:
            raise KeyError("lost")
        try:
            comm.barrier()
        except RankFailed as error:
            heard.append(str(error))
            raise

    start = time.perf_counter()
    with pytest.raises(KeyError, match="rank 2") as raised:
        local.run(act, ranks=4)
    assert time.perf_counter() - start < 5
    assert heard == ["rank 2 failed: KeyError: 'lost'"] * 3
    assert raised.value.__cause__.args == ("lost",)


class NoMessage(Exception):
    def __str__(self):
        raise LookupError("no message")


class KeywordOnly(Exception):
    def __init__(self, *, step):
        super().__init__(f"in step {step}")
        self.step = step


@pytest.mark.parametrize("run", [local.run, simulated.run])
@pytest.mark.parametrize(
    "error", [NoMessage(), ValueError("\ud800"), KeywordOnly(step=3), SystemExit(4)]
)
def test_any_exception_ends_the_ranks_and_keeps_its_type(run, error):
    def act(comm):
        if comm.rank == 1:
            raise error
        comm.barrier()

    with pytest.raises(type(error)) as raised:
        run(act, ranks=3)
    assert vars(raised.value).get("step") == vars(error).get("step")
    assert getattr(raised.value, "code", None) == getattr(error, "code", None)


@pytest.mark.parametrize("wait", ["recv", "split off", "background"])
def test_failure_ends_every_kind_of_wait(wait):
    def act(comm):
        half = comm.split(comm.rank % 2, 0)
        if comm.rank == 3:
            raise ValueError("no more")
        if wait == "recv":
            comm.recv_obj((comm.rank + 1) % 4, tag=0)
        elif wait == "split off":
            half.recv_obj(1 - half.rank, tag=0)
        else:
            comm.all_reduce(np.ones(3), wait=False).wait()

    with pytest.raises(ValueError, match="rank 3: no more"):
        local.run(act, ranks=4)


@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda comm: comm.all_reduce(np.ones(3 + comm.rank, "float32")),
            "got all_reduce sum float32 (3,) at {here} on rank 0 "
            "and all_reduce sum float32 (4,) at {here} on rank 1",
        ),
        (
            lambda comm: comm.all_reduce(np.ones(3, ["f4", "f8"][comm.rank])),
            "got all_reduce sum float32 (3,) at {here} on rank 0 "
            "and all_reduce sum float64 (3,) at {here} on rank 1",
        ),
        (
            lambda comm: comm.broadcast(np.ones(3, "int8"), root=comm.rank),
            "got broadcast int8 (3,) from rank 0 at {here} on rank 0 "
            "and broadcast int8 (3,) from rank 1 at {here} on rank 1",
        ),
        (
            lambda comm: comm.barrier() if comm.rank else comm.allgather(np.ones(3)),
            "got allgather at {here} on rank 0 and barrier at {here} on rank 1",
        ),
    ],
)
def test_different_calls_are_named(shared_memory, call, message):
    here = "HERE"
    pattern = re.escape(message.format(here=here)).replace(here, r"\S+:\d+ in \S+")

    def act(comm):
        with pytest.raises(InvalidType, match="expected the same call.*" + pattern):
            call(comm)
        return comm.all_reduce(np.ones(1))  # nothing was moved, so all is well

    assert local.run(act, ranks=2, shared_memory=shared_memory) == [2, 2]


@pytest.mark.parametrize("shared_memory", [True, False])
def test_timeout_names_missing_rank_and_its_last_call(monkeypatch, shared_memory):
    monkeypatch.setenv("RENGA_TIMEOUT", "0.3")
    rest = threading.Event()

    def act(comm):
        comm.all_reduce(np.ones(2))
        if comm.rank == 1:
            rest.wait()
            return
        message = r"barrier at \S+ in act: rank 0 waited 0.3 s for rank 1"
        if shared_memory:
            message += (
                r"; rank 1 was last in all_reduce sum float64 \(2,\) at \S+ in act"
            )
        with pytest.raises(TimeoutError, match=message):
            comm.barrier()
        with pytest.raises(RuntimeError, match="cannot be used after: barrier"):
            comm.barrier()
        with pytest.raises(
            TimeoutError, match=r"recv uint8 .*from rank 1 .*for rank 1"
        ):
            comm.recv_obj(1, tag=0)
        rest.set()

    local.run(act, ranks=2, shared_memory=shared_memory)


def test_long_message_that_is_not_received_times_out(monkeypatch):
    monkeypatch.setenv("RENGA_TIMEOUT", "0.2")
    rest = threading.Event()

    def act(comm):
        if comm.rank == 0:
            with pytest.raises(TimeoutError, match="send .* for rank 1"):
                comm.send(np.ones(100_000), 1, tag=0)
            rest.set()
        rest.wait()

    local.run(act, ranks=2)


@pytest.mark.parametrize("text", ["soon", "-1", "nan"])
def test_invalid_timeout_variable_is_refused(monkeypatch, text):
    monkeypatch.setenv("RENGA_TIMEOUT", text)
    with pytest.raises(
        ValueError, match=f"RENGA_TIMEOUT: expected seconds, got '{text}'"
    ):
        create_communicator("local")


def test_create_communicator_gives_a_thread_its_own():
    def act(comm):
        assert create_communicator("local") is comm
        return comm.rank, comm.intra_rank, comm.intra_size, comm.inter_rank

    assert local.run(act, ranks=2) == [(0, 0, 2, 0), (1, 1, 2, 0)]
    alone = create_communicator("local")
    assert (alone.rank, alone.size, alone.inter_size) == (0, 1, 1)
    np.testing.assert_array_equal(alone.allreduce(np.ones(2)), 1)


def test_abort_ends_the_group():
    def act(comm):
        if comm.rank == 0:
            comm.abort(3)
        comm.barrier()

    with pytest.raises(RankFailed, match="rank 0 aborted with code 3"):
        local.run(act, ranks=2)


def test_keyboard_interrupt_ends_the_ranks():
    heard = []

    def act(comm):
        comm.barrier()
        if comm.rank == 0:
            time.sleep(0.05)  # until the main thread waits
            # Handled in the main thread, whose wait it does not interrupt.
            signal.raise_signal(signal.SIGINT)
        try:
            comm.recv_obj(1 - comm.rank, tag=0)
        except RankFailed as error:
            heard.append(str(error))
            raise

    # Whoever runs in the background was told to ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            local.run(act, ranks=2)
    finally:
        signal.signal(signal.SIGINT, before)
    deadline = time.perf_counter() + 5
    while len(heard) < 2 and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert heard == ["the caller was interrupted: KeyboardInterrupt"] * 2


def test_a_process_may_end_right_after_its_ranks():
    """Threads that end may wait for the GIL no more when the interpreter does."""
    program = """
import numpy as np
from renga import Variable
from renga.communicators import local
from renga.distributed.functions import allgather
garbage = [[i] for i in range(1_000_000)]  # which the interpreter frees at its end
local.run(lambda comm: allgather(comm, Variable(np.ones(3, "f4"))), ranks=32)
"""
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True)
        assert done.returncode == 0, done.stderr


def test_zero_ranks_are_refused():
    with pytest.raises(ValueError, match="at least one rank, got 0"):
        local.run(lambda comm: None, ranks=0)


def test_ranks_share_memory_unless_told_otherwise():
    def act(comm):
        return comm.shares_memory()

    assert local.run(act, ranks=2) == [True, True]
    assert local.run(act, ranks=2, shared_memory=False) == [False, False]
