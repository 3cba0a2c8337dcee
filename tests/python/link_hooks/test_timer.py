"""TimerHook of links: nested calls and the printed table."""

import io
import time

import numpy
import pytest

import renga
import renga.links as L
from renga.link_hooks import TimerHook

X = numpy.ones((2, 3), "f")


class Slow(renga.Chain):
    def __init__(self, inner):
        super().__init__()
        with self.init_scope():
            self.inner = inner

    def forward(self, x):
        time.sleep(0.002)
        return self.inner(x)


def test_nested_links():
    hook = TimerHook()
    with hook:
        Slow(Slow(L.Linear(3, 2)))(X)
    names = [name for name, _ in hook.call_history]
    assert names == ["Linear", "Slow", "Slow"]
    linear, inner, outer = (seconds for _, seconds in hook.call_history)
    assert linear < inner < outer and inner >= 0.002 and outer >= 0.004
    # What runs within another call is counted once.
    assert hook.total_time() == pytest.approx(outer)
    summary = hook.summary()
    assert summary["Slow"]["occurrence"] == 2
    assert summary["Slow"]["elapsed_time"] == pytest.approx(inner + outer)


def test_one_link():
    hook = TimerHook()
    link = L.Linear(3, 2).add_hook(hook)
    for _ in range(3):
        link(X)
    L.Linear(3, 2)(X)
    assert hook.summary()["Linear"]["occurrence"] == 3


def test_report():
    hook = TimerHook()
    with hook:
        Slow(L.Linear(3, 2))(X)
    file = io.StringIO()
    hook.print_report(unit="us", file=file)
    header, *rows = (line.split() for line in file.getvalue().splitlines())
    assert header == ["LinkName", "ElapsedTime", "Occurrence"]
    assert [row[0] for row in rows] == ["Linear", "Slow"]
    assert all(row[1].endswith("us") and row[2] == "1" for row in rows)
    with pytest.raises(KeyError):
        hook.print_report(unit="days", file=file)


def test_call_that_raises_is_not_counted():
    hook = TimerHook()
    link = Slow(L.Linear(4, 2))
    with pytest.raises(renga.utils.type_check.InvalidType):
        with hook:
            link(X)
    with hook:
        L.Linear(3, 2)(X)
    assert [name for name, _ in hook.call_history] == ["Linear"]
