"""Locks in forked processes, where the thread that holds them does not exist."""

import io
import os
import pickle
import threading

import numpy as np
import pytest

from renga.datasets import PickleDataset
from renga.serializers import archive, save_npz

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def reading():
    dataset = PickleDataset(io.BytesIO(pickle.dumps(1) + pickle.dumps(2)))
    return dataset._lock, lambda: dataset[1] == 2


def loading():
    file = io.BytesIO()
    save_npz(file, {"x": np.arange(3)})
    return archive._PARSING, lambda: archive.NpzArchive(file)["x"].sum() == 3


def in_child(act):
    """Whether ``act`` returns true in a forked process, soon."""
    child = os.fork()
    if child == 0:
        try:
            threading.Timer(20, os._exit, [2]).start()
            os._exit(not act())
        finally:
            os._exit(3)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("make", [reading, loading])
def test_a_lock_that_another_thread_holds(make):
    lock, act = make()
    is_held, may_end = threading.Event(), threading.Event()

    def hold():
        with lock:
            is_held.set()
            may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    assert in_child(act)
    may_end.set()
    thread.join()
    assert act()


def test_a_lock_that_the_forking_thread_holds():
    lock, act = reading()

    def forks():
        with lock:
            assert act()
            return os.fork()

    child = forks()
    if child == 0:
        os._exit(not act())
    assert os.waitpid(child, 0)[1] == 0
    assert act()
