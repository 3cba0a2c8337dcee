"""Draws a call from a seed, makes it in several ways, and says what is wrong."""

from __future__ import annotations

import dataclasses
import functools
import re
import time
import warnings
from typing import Any

import numpy

import renga
from renga.utils.type_check import InvalidType
from tests.catalogue import CATALOGUE

from . import gradients
from .bad import spoil
from .compare import BFLOAT16, differ, precision
from .draw import FOREIGN, Draw, Operand, operands, tree_map
from .layouts import choose
from .run import Given, Result, copies, run
from .table import Case

CASES = [case for row in CATALOGUE.values() for case in row.fuzz]

# A RuntimeError, and Chainer's AssertionError for windows of other axes, begins so.
DOCUMENTED_TEXTS = (
    "fixed_batch_normalization: expected axes in ascending order",
    "cuda: expected a renga built with",
    "chainerx: expected ChainerX",
    *(f"{name}convolution_nd: expected" for name in ("", "de")),
    *(f"{name}pooling_nd: expected" for name in ("average_", "max_", "un")),
    "batch_normalization: expected axes in ascending order",
    "multi_node_batch_normalization: expected axes in ascending order",
    "Variable: expected an initialized array",
)
OF_ARRAYS = ("dtype", "ndim", "shape", "size")
SLOW = 1.0  # seconds
DOCUMENTED = (
    InvalidType,
    IndexError,
    MemoryError,
    NotImplementedError,
    OverflowError,
    TypeError,
    ValueError,
)


@dataclasses.dataclass
class Finding:
    """What is wrong with a call, and the text of the call."""

    seed: int
    number: int
    name: str
    fault: str
    text: str

    @property
    def key(self) -> str:
        """The same for findings that differ in numbers alone."""
        return self.name + ": " + re.sub(r"-?\d[\d.e+-]*|nan|inf", "#", self.fault)[:90]


@functools.cache
def choices(name: str) -> tuple[list[Case], Any]:
    """The cases of a function, or of all for "", and their cumulative weights."""
    cases = [case for case in CASES if name in ("", case.name.partition(".")[2])]
    w = numpy.array([case.weight for case in cases])
    return cases, w.cumsum() / w.sum()


class Trial:
    """One drawn call.

    A trial makes the call with native copies, with odd layouts and in float64, and
    compares these and the oracle.

    Args:
        seed, number: What the call is drawn from.
        name: The function that is called; "" for any.
    """

    def __init__(self, seed: int, number: int, name: str = "") -> None:
        self.seed, self.number = seed, number
        rng = numpy.random.default_rng((seed, number))
        cases, weights = choices(name)
        self.case = cases[int(numpy.searchsorted(weights, rng.random(), "right"))]
        self.g = Draw(rng, self.case.dtypes, self.case.special)
        self.spoiled = ""
        self.calls = 0
        self.findings: list[str] = []

    def found(self, fault: str) -> None:
        self.findings.append(fault)

    def check(self) -> list[Finding]:
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                self.compare_runs()
            except MemoryError:  # a result fits, a copy of it does not
                pass
        text = self.text()
        return [
            Finding(self.seed, self.number, self.case.name, fault, text)
            for fault in self.findings
        ]

    def draw(self) -> None:
        g = self.g
        args, kwargs = self.case.draw(g)
        if g.chance(0.25):
            args, kwargs, self.spoiled = spoil(g, args, kwargs)
        self.arguments = (args, kwargs)
        self.given = self.odd_layouts()
        self.draws = g.integer(0, 2**31)

    def compare_runs(self) -> None:
        self.draw()
        start = time.monotonic()
        copy = self.run(copies(self.arguments))
        self.check_error(copy, "copy")
        if time.monotonic() - start > SLOW:
            return  # many elements, which the oracle would take much longer for
        odd = self.run(self.given)
        if type(odd.error) is not type(copy.error):
            self.check_error(odd, "odd")
        if self.case.layouts:
            self.check_same(copy, odd)
        if copy.error is None:
            self.check_numbers(copy)
            if not self.spoiled and copy.gradients:
                self.check_gradients(copy)
        elif not self.spoiled:
            self.check_refusal(copy.error)

    def odd_layouts(self) -> dict[int, Given]:
        given = {}
        for x in operands(self.arguments):
            if isinstance(x.value, numpy.ndarray):
                wrapped = x.role == "x" and self.g.chance(0.7)
                half = wrapped and x.value.dtype == "f" and self.g.chance(0.06)
                layout = choose(self.g, x)
                if half:
                    x.value = to_bfloat16(x.value)
                given[id(x)] = Given(x, layout, wrapped, half)
        return given

    def run(self, given: dict[int, Given], upstream: Any = True) -> Result:
        self.calls += 1
        upstream = self.upstream if upstream is True else upstream
        function = self.case.function
        return run(function, self.arguments, given, self.draws, upstream)

    def upstream(self, i: int, y: Any) -> Any:
        """The gradient of output ``i``, the same in every run."""
        rng = numpy.random.default_rng((self.draws, i))
        return renga.Variable(rng.normal(size=y.shape).astype(y.dtype))

    def check_error(self, result: Result, which: str) -> None:
        for error in (result.error, result.backward_error):
            if error is not None and not is_documented(error):
                self.found(f"{type(error).__name__}: {error} ({which})")
        for fault in result.faults:
            self.found(f"{fault} ({which})")
        error = result.backward_error
        refused = isinstance(error, self.case.refuses)
        if error is not None and not self.spoiled and not refused:
            self.found(f"backward {type(error).__name__}: {error} ({which})")

    def check_refusal(self, error: Exception) -> None:
        """Arguments as drawn are refused only where NumPy refuses them, too."""
        if not is_documented(error) or isinstance(error, self.case.refuses):
            return
        dtypes = {x.value.dtype for x in operands(self.arguments)}
        if any(dtype.char in FOREIGN for dtype in dtypes):
            return
        if isinstance(error, InvalidType) and sum(d.kind == "f" for d in dtypes) > 1:
            return
        _, raised = self.expected()
        if raised is None:
            self.found(f"refused: {type(error).__name__}: {error}")

    def check_same(self, copy: Result, odd: Result) -> None:
        """An odd layout changes nothing, if it is not that of a target."""
        if copy.error is not None or odd.error is not None:
            self.check_same_error(copy.error, odd.error)
            return
        error = self.error(copy.outputs)
        if len(copy.outputs) != len(odd.outputs):
            self.found("as many outputs as in the copy's run expected")
            return
        for i, (a, b) in enumerate(zip(copy.outputs, odd.outputs)):
            self.check_pair(f"odd layout: output {i}", b, a, error)
        if self.spoiled or copy.gradients is None or odd.gradients is None:
            return  # extreme numbers multiply what rounding leaves
        for i, (a, b) in enumerate(zip(copy.gradients, odd.gradients)):
            if a is not None and b is not None:
                self.check_pair(f"odd layout: gradient {i}", b, a, 4 * error)

    def check_pair(self, what: str, found: Any, expected: Any, error: float) -> None:
        if found is None or expected is None:
            if found is not expected:
                self.found(f"{what}: {found} instead of {expected}")
            return
        if found.dtype.newbyteorder("=") != expected.dtype:
            self.found(f"{what}: {found.dtype} instead of {expected.dtype}")
            return
        # Results of rounded operands differ by as much as the operands do.
        least = max(1e-3, error) if self.any_rounded() else 1e-3
        difference = differ(found.astype(expected.dtype), expected, error, least)
        if difference:
            self.found(f"{what}: {difference}")

    def check_same_error(self, copy: Any, odd: Any) -> None:
        if copy is not None and odd is not None:
            return
        targets = [x for x in self.given.values() if x.operand.role == "target"]
        if copy is None and any(not x.layout.plain for x in targets):
            return
        if any(x.value.dtype.char not in "?efdbhilB" for x in operands(self.arguments)):
            return
        one, other = ("copy", "odd layout") if odd is None else ("odd layout", "copy")
        error = odd if copy is None else copy
        if isinstance(error, InvalidType) and self.mixes_dtypes():
            return  # Variables do not mix them, arrays beside a Variable are cast
        if isinstance(error, MemoryError):
            return  # there was less memory than at the other time
        self.found(f"{one} refused, {other} taken: {type(error).__name__}: {error}")

    def any_rounded(self) -> bool:
        return any(x.rounded for x in self.given.values())

    def mixes_dtypes(self) -> bool:
        dtypes = {x.value.dtype for x in operands(self.arguments)}
        spoiled = "dtype" in self.spoiled or "-> array(" in self.spoiled
        return self.g.mixed or spoiled or len(dtypes) > 1

    def error(self, outputs: list[Any]) -> float:
        """The relative error accepted, by the coarsest dtype that takes part."""
        dtypes = [x.value.dtype for x in operands(self.arguments) if is_float(x.value)]
        dtypes += [y.dtype for y in outputs if y is not None]
        least = BFLOAT16 if self.any_rounded() else 0.0
        return max(precision(*dtypes), least) * self.case.within

    def expected(self) -> tuple[list[Any] | None, Exception | None]:
        """What the oracle or the float64 run gives, or the error there."""
        if self.case.oracle is None:
            return self.in_double()
        try:
            args, kwargs = tree_map(for_oracle, self.arguments)
            ys = self.case.oracle(*args, **kwargs)
            return (list(ys) if isinstance(ys, (list, tuple)) else [ys]), None
        except Exception as error:
            return None, error

    def in_double(self) -> tuple[list[Any] | None, Exception | None]:
        arguments = gradients.in_double(self.arguments)
        result = run(self.case.function, arguments, copies(arguments), self.draws)
        return result.outputs, result.error

    def check_numbers(self, copy: Result) -> None:
        expected, raised = self.expected()
        if raised is not None:
            if not self.spoiled:
                self.found(f"taken, refused by the oracle: {raised!r}"[:200])
            return
        if self.spoiled and self.case.oracle is None:
            return  # extreme numbers overflow sooner in fewer bits
        assert expected is not None
        # A bad argument in place of a target is not among the outputs.
        if len(copy.outputs) < len(expected) and "array ->" not in self.spoiled:
            self.found(f"{len(copy.outputs)} outputs instead of {len(expected)}")
            return
        error = self.error(copy.outputs)
        for i, (y, e) in enumerate(zip(copy.outputs, expected)):
            if y is None or ("dtype" in self.spoiled and y.dtype.kind != "f"):
                continue
            if y.dtype.kind in "iu" and "." in self.spoiled:
                continue  # a fraction added to whole numbers is truncated first
            if self.spoiled and "e+308" in self.spoiled:
                continue  # a scalar that is infinite in fewer bits
            if (
                self.spoiled
                and y.dtype.kind in "iu"
                and y.size
                and numpy.isfinite(e).all()
            ):
                e = numpy.asarray(e).astype("q").astype(y.dtype)  # scalars are cast
            # NumPy computes in float16 what has no operand but a float16 scalar.
            least = precision(numpy.asarray(e).dtype) if self.spoiled else 0.0
            difference = differ(y, e, max(error, least))
            if difference:
                self.found(f"output {i}: {y.dtype} {difference}")

    def check_gradients(self, copy: Result) -> None:
        if self.g.special or self.g.chance(0.6):
            return
        smooth = self.case.smooth and self.g.chance(0.5)
        arguments = (self.case.function, self.arguments, self.draws, self.upstream)
        self.findings += gradients.faults(*arguments, copy, smooth, self.case.within)

    def text(self) -> str:
        def leaf(x: Any) -> Any:
            if not isinstance(x, Operand):
                return x
            given = self.given.get(id(x)) if hasattr(self, "given") else None
            return Shown(x, given)

        if not hasattr(self, "arguments"):
            return self.case.name
        args, kwargs = tree_map(leaf, self.arguments)
        shown = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
        text = f"{self.case.name}({', '.join(shown)})"
        return text + (f"  # spoiled: {self.spoiled}" if self.spoiled else "")


class Shown:
    """Prints an operand in a few words."""

    def __init__(self, x: Operand, given: Given | None) -> None:
        value = x.value
        self.text = f"{value.dtype}{list(value.shape)}"
        if given is not None:
            self.text += "".join(
                [" Variable" * given.wrapped, " bfloat16" * given.rounded]
            )
            self.text += f" {given.layout.text()}".rstrip()

    def __repr__(self) -> str:
        return f"<{self.text}>"


def is_documented(error: Exception) -> bool:
    if isinstance(error, AttributeError):
        # The message is as in Chainer: "'int' object has no attribute 'ndim'".
        return error.name in OF_ARRAYS and not hasattr(error.obj, "__array__")
    return isinstance(error, DOCUMENTED) or str(error).startswith(DOCUMENTED_TEXTS)


def is_float(value: Any) -> bool:
    return value.dtype.kind == "f"


def to_bfloat16(value: Any) -> Any:
    """Rounded toward zero to the eight bits that bfloat16 keeps."""
    bits = value.copy().view(numpy.uint32)
    bits &= numpy.uint32(0xFFFF0000)
    return bits.view(numpy.float32)


def for_oracle(x: Any) -> Any:
    if isinstance(x, Operand):
        return x.value.astype("d") if is_float(x.value) else x.value.copy()
    if isinstance(x, numpy.integer):
        return int(x)
    return x if not hasattr(x, "parts") else x.make(*x.parts)
