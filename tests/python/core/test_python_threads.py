"""Concurrent Python threads have the same results as single ones."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any, Callable

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L

THREADS = 4
TURNS = 5


def at_once(act: Callable[[int], Any]) -> list[Any]:
    """The results of act(i) on threads i, which start together."""
    results: list[Any] = [None] * THREADS
    errors: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def run(i: int) -> None:
        try:
            start.wait()
            results[i] = [act(i) for _ in range(TURNS)]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


class Images(renga.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(3, 8, 3, pad=1)
            self.bn = L.BatchNormalization(8)
            self.fc = L.Linear(8 * 8 * 8, 10)

    def forward(self, x: Any) -> Any:
        h = F.max_pooling_2d(F.relu(self.bn(self.conv(x))), 2)
        return self.fc(h)


class Words(renga.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(20, 16)
            self.lstm = L.NStepLSTM(1, 16, 16, 0.0)
            self.fc = L.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        _, _, hs = self.lstm(None, None, [self.embed(row) for row in x])
        return self.fc(F.stack([h[-1] for h in hs]))


def images() -> np.ndarray:
    return np.random.RandomState(1).rand(4, 3, 16, 16).astype("f")


def words() -> np.ndarray:
    return np.random.RandomState(2).randint(0, 20, (4, 12)).astype("i")


CASES = [(Images, images), (Words, words)]


@pytest.mark.parametrize(("make", "data"), CASES)
def test_training_of_a_model_for_each_thread(make: Any, data: Any) -> None:
    x, t = data(), np.arange(4, dtype="i")

    def train(seed: int) -> list[np.ndarray]:
        model = models[seed].copy("copy")
        optimizer = renga.optimizers.MomentumSGD(0.1).setup(model)
        for _ in range(3):
            optimizer.update(lambda: F.softmax_cross_entropy(model(x), t))
        return [param.array for _, param in sorted(model.namedparams())]

    models = [make() for _ in range(THREADS)]
    expected = [train(i) for i in range(THREADS)]
    for alone, turns in zip(expected, at_once(train)):
        for together in turns:
            for a, b in zip(alone, together):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("make", "data"), CASES)
def test_one_model_evaluated_by_all_threads(make: Any, data: Any) -> None:
    model, x = make(), data()

    def evaluate(_: int) -> np.ndarray:
        with renga.using_config("train", False), renga.no_backprop_mode():
            return model(x).array

    expected = evaluate(0)
    for turns in at_once(evaluate):
        for y in turns:
            np.testing.assert_array_equal(y, expected)


def test_an_input_shared_by_all_threads() -> None:
    x = renga.Variable(np.random.RandomState(0).rand(300, 300).astype("f"))
    W = renga.Variable(np.random.RandomState(1).rand(300, 300).astype("f"))

    def gradient(_: int) -> tuple:
        y = F.sum(F.tanh(F.matmul(x * 2 + 1, W)) ** 2)
        return tuple(g.array for g in renga.grad([y], [x, W]))

    expected = gradient(0)
    for turns in at_once(gradient):
        for gradients in turns:
            for a, b in zip(expected, gradients):
                np.testing.assert_array_equal(a, b)


def test_a_program_ends_while_daemon_threads_compute():
    program = """
import threading, time
import numpy as np
import renga.functions as F

x = np.ones((400, 400), "f")

def loop():
    while True:
        F.matmul(x, x).array

for _ in range(2):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.05)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_program_ends_while_daemon_threads_wait_for_messages():
    program = """
import threading, time
from renga.communicators import local

def loop(comm):
    while comm.rank == 1:
        comm.recv_obj(0)
    for _ in range(1000):
        comm.send_obj("text", 1)
        time.sleep(0.0001)

threading.Thread(target=lambda: local.run(loop, ranks=2), daemon=True).start()
time.sleep(0.2)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_thread_waits_for_a_message_longer_than_there_is_an_interpreter():
    program = """
import ctypes, gc, threading, time
from renga.communicators import local

def wait(comm):
    comm.recv_obj((comm.rank + 1) % 8)

threading.Thread(target=lambda: local.run(wait, ranks=8), daemon=True).start()
time.sleep(0.2)
gc.freeze()  # the interpreter ends sooner than a waiting thread next looks for signals
process = ctypes.CDLL(None)
process.__cxa_atexit(process.getchar, None, None)  # waits for the end of standard input
"""
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe) as process:
        time.sleep(1)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")
