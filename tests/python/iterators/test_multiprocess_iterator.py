"""MultiprocessIterator: batches, shared memory, and processes that fail."""

import copy
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time

import numpy
import pytest

from renga.iterators import MultiprocessIterator, SerialIterator
from renga.iterators.shared_block import SharedBlock, read_pickle, write_pickle


class Squares:
    """Small pictures; example 13 raises, 66 is slow, 77 kills its process."""

    def __init__(self, size, shape=(3, 4)):
        self.pictures = numpy.arange(size * numpy.prod(shape), dtype="f4")
        self.pictures = self.pictures.reshape(size, *shape)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        if index == 13:
            raise LookupError("unlucky")
        if index == 66:
            time.sleep(1.5)
        if index == 77:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.pictures[index] ** 2, numpy.int32(index), os.getpid()


def pictures(batch):
    return numpy.stack([example[0] for example in batch])


def shared_files():
    """What this process has open of the memory that it shares with others."""
    paths = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    targets = [os.readlink(path) for path in paths if os.path.lexists(path)]
    return [target for target in targets if "memfd:renga" in target]


@pytest.fixture
def make():
    made = []

    def iterator(*args, n_processes=1, **kwargs):
        made.append(MultiprocessIterator(*args, n_processes=n_processes, **kwargs))
        return made[-1]

    before = shared_files()
    yield iterator
    assert len(shared_files()) > len(before)
    for each in made:
        each.finalize()
    assert shared_files() == before


def test_batches_are_those_of_a_serial_iterator(make):
    dataset = Squares(11)
    numpy.random.seed(0)
    want = SerialIterator(dataset, 4)
    serial = [[next(want), want.epoch, want.is_new_epoch] for _ in range(7)]
    numpy.random.seed(0)
    ours = make(dataset, 4, n_processes=2, n_prefetch=3)
    processes = set()
    for batch, epoch, is_new_epoch in serial:
        got = next(ours)
        numpy.testing.assert_array_equal(pictures(got), pictures(batch))
        assert [e[1] for e in got] == [e[1] for e in batch]
        assert (ours.epoch, ours.is_new_epoch) == (epoch, is_new_epoch)
        processes |= {example[2] for example in got}
    assert os.getpid() not in processes
    assert all(example[0].flags.writeable for example in got)
    # The next batches are not read into the memory of this one.
    kept = pictures(got).copy()
    next(ours), next(ours)
    numpy.testing.assert_array_equal(pictures(got), kept)


def test_without_repeat_and_after_a_reset(make):
    ours = make(Squares(5), 2, repeat=False, shuffle=False)
    for _ in range(2):
        assert [[e[1] for e in batch] for batch in ours] == [[0, 1], [2, 3], [4]]
        ours.reset()


# With several batches ahead, a process reads examples of two batches at once.
@pytest.mark.parametrize("n_prefetch", [1, 3])
def test_an_error_is_raised_at_its_batch_and_the_next_batch_follows(make, n_prefetch):
    ours = make(Squares(20), 4, shuffle=False, n_prefetch=n_prefetch)
    for _ in range(3):
        next(ours)
    with pytest.raises(LookupError, match="unlucky"):
        next(ours)
    assert [e[1] for e in next(ours)] == [16, 17, 18, 19]


def test_a_dead_process_is_reported(make):
    ours = make(Squares(80), 40, shuffle=False, n_prefetch=1)
    with pytest.raises((RuntimeError, LookupError)):
        next(ours)
    with pytest.raises(RuntimeError, match="a process that read examples died"):
        next(ours)


def test_a_warning_after_the_timeout(make):
    def slowest_first(order, position):
        return numpy.arange(67)[::-1]

    ours = make(Squares(67), 1, order_sampler=slowest_first, dataset_timeout=0.2)
    with pytest.warns(MultiprocessIterator.TimeoutWarning, match="0.2 s"):
        assert next(ours)[0][1] == 66


def test_processes_are_replaced_after_maxtasksperchild(make):
    ours = make(Squares(8), 2, shuffle=False, maxtasksperchild=2)
    first, second, third = (next(ours)[0][2] for _ in range(3))
    assert first == second != third


def test_copies_and_the_original_go_on_independently(make):
    original = make(Squares(12), 3, shuffle=False)
    next(original)
    copies = [copy.copy(original), pickle.loads(pickle.dumps(original))]
    del copies[0]
    other = copy.deepcopy(original)
    for iterator in (other, original, other, original):
        begin = iterator.current_position
        assert [e[1] for e in next(iterator)] == [begin, begin + 1, begin + 2]
    other.finalize()
    assert [e[1] for e in next(original)] == [9, 10, 11]
    assert copies[0].current_position == 3


def test_objects_that_pickle_alone_cannot_take(make):
    pytest.importorskip("cloudpickle")
    from renga.datasets import TransformDataset

    ours = make(TransformDataset(range(6), lambda x: 10 * x), 3, shuffle=False)
    assert next(ours) == [0, 10, 20]


@pytest.mark.parametrize("capacity", [None, 100, 100_000])
def test_shared_pickle(capacity):
    block = None if capacity is None else SharedBlock(capacity)
    buf = block and block.buf
    obj = {"a": numpy.arange(1000.0), "b": [numpy.zeros(0), numpy.arange(3)], "c": "x"}
    written = write_pickle(obj, buf)
    assert (written.inline is None) == (capacity == 100_000)
    assert written.size >= 8024
    for copies in (True, False):
        again = read_pickle(written, buf, copies)
        numpy.testing.assert_array_equal(again["a"], obj["a"])
        numpy.testing.assert_array_equal(again["b"][1], [0, 1, 2])
        assert again["b"][0].size == 0 and again["c"] == "x"
        assert again["a"].flags.writeable == (copies or written.inline is not None)
        del again
    if block is not None:
        block.close()


def run(tmp_path, program):
    script = tmp_path / "script.py"
    script.write_text(program)
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60
    )


SCRIPT = """
import numpy, renga

class Data:
    def __init__(self):
        self.x = numpy.ones((50, 1000), numpy.float32)
    def __len__(self):
        return 50
    def __getitem__(self, i):
        return self.x[i] * i

if __name__ == "__main__":
    it = renga.iterators.MultiprocessIterator(Data(), 10, shuffle=False, n_processes=2)
    print(sum(float(e.sum()) for _ in range(5) for e in next(it)))
    {end}
"""


@pytest.mark.parametrize("end", ["it.finalize()", "pass", "raise SystemExit(0)"])
def test_a_script_ends_without_output(tmp_path, end):
    done = run(tmp_path, SCRIPT.replace("{end}", end))
    assert (done.stdout, done.stderr, done.returncode) == ("1225000.0\n", "", 0)


ERRORS = """
import io, os, signal, sys, urllib.error
import renga

class Example:
    pass

class TwoArguments(Exception):
    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")

class Data(renga.dataset.DatasetMixin):
    def __len__(self):
        return 4
    def get_example(self, i):
        if i == 0:
            raise TwoArguments(7, "seven")
        if i == 1:
            raise urllib.error.HTTPError("http://a", 404, "gone", {}, io.BytesIO())
        return Example() if i == 2 else os.getpid()

if __name__ == "__main__":
    it = renga.iterators.MultiprocessIterator(Data(), 1, shuffle=False, n_processes=1)
    for kind in (TwoArguments, urllib.error.HTTPError):
        try:
            next(it)
        except kind as error:
            print(error, "raise" in str(error.__cause__))
    print(isinstance(next(it)[0], Example))
    print(next(it)[0], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_classes_of_a_script_and_the_end_of_a_killed_one(tmp_path):
    done = run(tmp_path, ERRORS)
    *lines, reader = done.stdout.splitlines()
    assert lines == ["7: seven True", "HTTP Error 404: gone True", "True"], done.stderr
    assert done.returncode == -signal.SIGKILL
    end = time.monotonic() + 10
    while is_alive(reader) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_alive(reader)


def is_alive(process):
    try:
        status = pathlib.Path("/proc", process, "stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def test_a_script_without_a_main_guard_is_told_what_is_missing(tmp_path):
    program = """
import renga
next(renga.iterators.MultiprocessIterator(range(4), 2, n_processes=1))
"""
    done = run(tmp_path, program)
    assert done.returncode == 1
    start = "RuntimeError: MultiprocessIterator: its processes died"
    (said,) = [line for line in done.stderr.splitlines() if line.startswith(start)]
    assert said.endswith('under `if __name__ == "__main__":`')
