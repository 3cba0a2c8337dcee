"""Ranks for tests: threads in one process, or the processes of mpiexec.

``mpiexec -n 3 python -m pytest -m mpi`` runs every test that asks for ``ranks`` on
three processes; without mpiexec each runs on one to four threads.
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import importlib
import os
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable

import pytest
from _pytest.runner import runtestprotocol

_UNDER_MPIEXEC = "OMPI_COMM_WORLD_SIZE" in os.environ
_SIMULATED = "simulated messages"
# The fixtures that run a function on each rank.
_OF_RANKS = {
    *("ranks", "several_ranks", "some_ranks", "ranks_with_threads"),
    "ranks_with_own_random_numbers",
}
# A test that hangs and keeps the GIL, which pytest-timeout cannot interrupt, ends the
# run with the stacks of all threads. The seconds are counted anew each minute.
_HANGING = 460.0
_REARMING = 60.0
_watched_since = -_REARMING
_stderr = 2
_PROCESS = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))

if _UNDER_MPIEXEC:
    os.environ.setdefault("RENGA_TIMEOUT", "30")
    ALL_KINDS: list[Any] = ["mpi", "messages"]
    # Two processes share memory, more send messages. Threads do it the other way.
    _KINDS = ["mpi"] if os.environ["OMPI_COMM_WORLD_SIZE"] == "2" else ["messages"]
    _SOME: list[Any] = ["mpi"]
    if os.environ["OMPI_COMM_WORLD_SIZE"] == "2":
        _OF_RANKS.remove("some_ranks")  # two threads and three processes run these
    _SEPARATE = ALL_KINDS
else:
    ALL_KINDS = [
        (n, how, 1) for n in (1, 2, 3, 4) for how in ("shared memory", "messages")
    ]
    ALL_KINDS += [(4, "shared memory", 2), (4, _SIMULATED, 2)]
    # One rank sends nothing in either way. Two processes share memory and three send
    # messages, so two threads send messages and three share memory. Four ranks send
    # messages as two do and as simulated ones do, and share memory within two nodes;
    # all four on one node are those of communicators, grids and combinations.
    _REPEATED = [
        *((1, "messages", 1), (2, "shared memory", 1), (3, "messages", 1)),
        *((4, "messages", 1), (4, "shared memory", 1)),
    ]
    _KINDS = [kind for kind in ALL_KINDS if kind not in _REPEATED]
    _SOME = [(2, "messages", 1), (4, "shared memory", 2)]  # three processes are others
    _SEPARATE = [(n, _SIMULATED, 1) for n in (1, 2, 3, 4)]

# The tests' CUDA devices: the plugin as C++ on a stand-in for CUDA
# (``tools/cuda-standin``), and a stand-in for CuPy.
if os.environ.get("RENGA_CUDA_STANDIN"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "cuda_standin"))
    sys.modules["renga._cuda"] = importlib.import_module("renga._cuda_standin")


def kind_name(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    size, how, nodes = kind
    name = f"{size} ranks by {how}"
    return name if nodes == 1 else f"{name} on {nodes} nodes"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    global _stderr
    _stderr = os.dup(2)  # pytest captures it later
    config.addinivalue_line("markers", "mpi: runs under mpiexec too")
    config.addinivalue_line("markers", "timed: is run alone, as it measures")
    for mark in ("gpu", "slow"):  # those of renga.testing
        config.addinivalue_line("markers", mark)
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if _PROCESS > 0 and reporter is not None:
        # Rank 0 alone tells how it goes.
        config.pluginmanager.unregister(reporter)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if _PROCESS > 0 and report.failed:
        text = f"[rank {_PROCESS}] {report.nodeid}\n{report.longreprtext}"
        print(text, file=sys.__stderr__, flush=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _OF_RANKS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.mpi)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    # pytest's faulthandler_timeout starts and ends a thread for each test: that takes
    # a millisecond.
    global _watched_since
    if time.monotonic() - _watched_since > _REARMING:
        _watched_since = time.monotonic()
        faulthandler.dump_traceback_later(_HANGING, exit=True, file=_stderr)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Any) -> bool | None:
    # To send xdist's process each set-up and tear-down that passes takes a millisecond.
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    # The garbage collector need not look at tens of thousands of tests again and again.
    gc.disable()
    yield
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _products_of_bfloat16() -> None:
    """Also on CPUs that have them, but multiply floats faster."""
    from renga import _core

    _core.override_bfloat16(True)


@pytest.fixture(scope="session", autouse=True)
def _short_measurements() -> None:
    from tests.short_measurements import shorten

    shorten()


@pytest.fixture(params=_KINDS, ids=kind_name)
def ranks(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """Calls a function with each rank's communicator; the results in rank order."""
    return runner(request.param)


@pytest.fixture(params=[k for k in _KINDS if k[0] != 1], ids=kind_name)
def several_ranks(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """``ranks`` with two ranks or more, for tests that send messages."""
    return runner(request.param)


@pytest.fixture(params=_SOME, ids=kind_name)
def some_ranks(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """``ranks`` for details of what is tested on all kinds elsewhere.

    Each number of ranks has one kind: two and four are threads, three are processes.
    """
    return runner(request.param)


@pytest.fixture(params=[k for k in _KINDS if _SIMULATED not in k], ids=kind_name)
def ranks_with_threads(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """``ranks`` for tests in which a rank communicates from several threads."""
    return runner(request.param)


@pytest.fixture(params=_SEPARATE, ids=kind_name)
def ranks_with_own_random_numbers(
    request: pytest.FixtureRequest,
) -> Callable[..., list[Any]]:
    """``ranks`` whose global random generators are their own: no threads."""
    return runner(request.param)


def runner(kind: Any) -> Callable[..., list[Any]]:
    if _UNDER_MPIEXEC:
        return functools.partial(_run_on_processes, kind)
    from renga.communicators import local, simulated

    size, how, nodes = kind

    def run(function: Callable[..., Any], *args: Any) -> list[Any]:
        if how == _SIMULATED:
            machine = simulated.Machine(intra_size=size // nodes)
            act = functools.partial(_with_args, function, args)
            return simulated.run(act, size, machine).results
        shared = how == "shared memory"
        return local.run(function, *args, ranks=size, shared_memory=shared, nodes=nodes)

    return run


def _with_args(function: Callable[..., Any], args: Any, comm: Any) -> Any:
    return function(comm, *args)


@functools.cache
def _world(name: str) -> Any:
    from renga.communicators import create_communicator

    return create_communicator(name)


def _run_on_processes(name: str, function: Callable[..., Any], *args: Any) -> list[Any]:
    comm = _world(name)
    result = error = None
    try:
        result = function(comm, *args)
    except Exception as raised:
        error = raised
    outcomes = comm.allgather_obj((result, error))
    for _, raised in outcomes:
        if raised is not None:
            raise raised
    return [outcome[0] for outcome in outcomes]
