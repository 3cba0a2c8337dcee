"""Exceptions that are raised again in other processes and by other ranks."""

import dataclasses
import io
import pickle
import subprocess
import sys
import threading
import urllib.error

import numpy
import pytest

from renga.utils import exceptions
from renga.utils.type_check import InvalidType


class TwoArguments(Exception):
    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")
        self.code = code


class KeywordOnly(ValueError):
    def __init__(self, text, *, hint):
        super().__init__(text)
        self.hint = hint

    def __str__(self):
        return f"{self.args[0]} ({self.hint})"


class OwnFile(OSError):
    def __init__(self, name):
        super().__init__(2, "not there", name)


class Slots(Exception):
    __slots__ = ("step",)

    def __init__(self, step):
        super().__init__()
        self.step = step

    def __str__(self):
        return f"in step {self.step}"


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    step: int


class Reduced(Exception):
    def __init__(self, one, two):
        super().__init__(one)
        self.two = two

    def __reduce__(self):
        return Reduced, (self.args[0], self.two)


class StaysHere(Exception):
    def __reduce__(self):
        raise TypeError("stays here")


class AnyAttribute(Exception):
    def __getattr__(self, name):
        raise KeyError(name)  # no AttributeError


class Itself(Exception):
    def __init__(self):
        super().__init__("again")
        self.errors = [self, TwoArguments(1, "inner")]


class NoMessage(Exception):
    def __str__(self):
        raise LookupError("no message")


def http_error():
    return urllib.error.HTTPError("http://a", 404, "gone", {}, io.BytesIO(b"page"))


ERRORS = [
    lambda: KeyError("k"),
    lambda: AssertionError(),
    lambda: TwoArguments(7, "seven"),
    lambda: KeywordOnly("bad", hint="try again"),
    lambda: FileNotFoundError(2, "not there", "name"),
    lambda: OwnFile("name"),
    lambda: UnicodeDecodeError("ascii", b"\xff", 0, 1, "why"),
    lambda: ImportError("no module", name="absent"),
    lambda: subprocess.CalledProcessError(3, ["false"]),
    lambda: InvalidType("x.ndim == 2", "x.ndim == 3"),
    lambda: Slots(5),
    lambda: Frozen(6),
    lambda: Reduced("a", "b"),
    lambda: SystemExit(3),
    lambda: ValueError("\ud800"),
    http_error,
]


def raised(error):
    try:
        raise error
    except BaseException as caught:
        return caught


def sent(error):
    packed = exceptions.pack(raised(error))
    return pickle.loads(pickle.dumps(packed)).unpack()


def attributes(error):
    names = ["errno", "filename", "start", "msg", "code", "hint", "step", "two"]
    return [getattr(error, name, None) for name in names]


class Located(Exception):
    place = "there"

    def __str__(self):
        return f"it happened {self.place}"


def test_a_message_that_is_another_one_elsewhere(monkeypatch):
    packed = exceptions.pack(raised(Located()))
    monkeypatch.setattr(Located, "place", "here")
    error = packed.unpack()
    assert type(error) is RuntimeError
    assert str(error) == "Located: it happened there"


@pytest.mark.parametrize("make", ERRORS)
def test_exceptions_arrive_with_type_message_and_traceback(make):
    error, again = make(), sent(make())
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert repr(again.args) == repr(error.args) or isinstance(error, OSError)
    assert attributes(again) == attributes(error)
    assert "in raised\n    raise error" in str(again.__cause__)


def test_attributes_of_an_error_of_a_download():
    again = sent(http_error())
    assert (again.code, again.msg, again.fp.read()) == (404, "gone", b"page")


def test_attributes_that_cannot_be_pickled_are_left_out():
    error = TwoArguments(1, "locked")
    error.lock = threading.Lock()
    error.x = numpy.arange(3)
    again = sent(error)
    assert type(again) is TwoArguments and str(again) == "1: locked"
    assert again.x.tolist() == [0, 1, 2] and not hasattr(again, "lock")
    assert again.__notes__ == ["its attribute lock cannot be pickled"]


def test_exceptions_that_refer_to_others_and_to_themselves():
    again = sent(Itself())
    assert again.__notes__ == ["its attribute errors cannot be pickled"]
    inner = TwoArguments(2, "inner")
    for _ in range(30):
        outer = KeywordOnly("outer", hint="h")
        outer.reason, inner = inner, outer
    again = sent(outer)
    for _ in range(30):
        again = again.reason
    assert type(again) is TwoArguments and again.code == 2


def test_a_class_whose_attributes_raise_has_a_traceback():
    packed = exceptions.pack(raised(AnyAttribute("odd")))
    assert "raise error" in packed.traceback
    assert "AnyAttribute: odd\n" in packed.traceback


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StaysHere("shape"), "StaysHere: shape"),
        (NoMessage(), "NoMessage: <its message cannot be made>"),
        (ValueError(threading.Lock()), "ValueError: <unlocked _thread.lock"),
    ],
)
def test_others_arrive_as_text(error, text):
    again = sent(error)
    assert exceptions.describe(again).endswith(exceptions.describe(error))
    assert text in exceptions.describe(again)
    assert "Traceback" in str(again.__cause__)


def test_causes_arrive_in_the_traceback():
    try:
        try:
            raise TwoArguments(2, "inner")
        except TwoArguments as inner:
            raise KeywordOnly("outer", hint="h") from inner
    except KeywordOnly as error:
        again = exceptions.pack(error).unpack()
    assert type(again) is KeywordOnly
    assert "TwoArguments: 2: inner" in str(again.__cause__)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups are of Python 3.11")
def test_groups_arrive_with_their_members():
    group = ExceptionGroup("several", [TwoArguments(3, "x"), http_error()])  # noqa: F821
    again = sent(group)
    assert [type(e) for e in again.exceptions] == [type(e) for e in group.exceptions]
    assert str(again) == str(group) and again.exceptions[0].code == 3
    assert "TwoArguments: 3: x" in str(again.__cause__)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("bad"), "rank 1: bad"),
        (KeyError("lost"), "\"rank 1: 'lost'\""),
        (TwoArguments(7, "seven"), "rank 1: 7: seven"),
        (InvalidType("2 axes", "3"), "rank 1: Expect: 2 axes\nActual: 3"),
        (AssertionError(), "rank 1"),
    ],
)
def test_a_prefix_of_a_message(error, message):
    copy = exceptions.with_prefix(error, "rank 1")
    assert type(copy) is type(error) and str(copy) == message
    assert vars(copy) == vars(error)


@pytest.mark.parametrize(
    "make",
    [
        http_error,
        lambda: KeywordOnly("a", hint="b"),
        lambda: KeyError(3),
        lambda: OwnFile("name"),
        lambda: SystemExit("no data"),
        lambda: Reduced("a", "b"),
    ],
)
def test_a_prefix_is_a_note_where_the_message_has_other_parts(make):
    error = make()
    if type(error) is Reduced:
        error.args = ("a", "c")
    copy = exceptions.with_prefix(error, "rank 1")
    assert type(copy) is type(error) and str(copy) == str(error)
    assert copy.__notes__ == ["rank 1"] and not hasattr(error, "__notes__")


def test_outcomes_are_the_same_elsewhere():
    def fail():
        raise TwoArguments(4, "four")

    fine, failed = exceptions.CallOutcome(divmod, 7, 2), exceptions.CallOutcome(fail)
    assert fine.get() == pickle.loads(pickle.dumps(fine)).get() == (3, 1)
    for outcome in (failed, pickle.loads(pickle.dumps(failed))):
        with pytest.raises(TwoArguments, match="4: four"):
            outcome.get()
