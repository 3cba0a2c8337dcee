"""Runs a file of cases under whatever ``chainer`` is, and writes their outcomes.

``python record.py losses`` with Chainer 7.8.1 (Python 3.8, NumPy below 1.24) writes
``recorded/functions/losses.json``; ``python -m renga.chainer record.py losses FILE`` writes what
renga does into another file.

A file of cases has lines of expressions in ``EXPRESSIONS``, which see the module's own
names, and functions without arguments whose names begin with ``case_``. ``GENERATED``
has further functions by name, and ``OMITTED`` names an error that is no outcome.
"""

import importlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

import chainer
import numpy

FOLDER = Path(__file__).parent
# Arrays with more elements are shown by sums.
SHOWN = 12


def numbers(x):
    """The elements of an array, or a weighted sum, the sum of magnitudes, extremes."""
    if x.dtype.kind not in "biuf":
        return [shown(element) for element in x.ravel()[:SHOWN].tolist()]
    x = x.astype("d").ravel()
    if x.size > SHOWN:
        weights = 1 + 0.5 * numpy.cos(numpy.arange(x.size))
        x = numpy.array([(x * weights).sum(), abs(x).sum(), x.min(), x.max()])
    return [rounded(value) for value in x]


def rounded(value):
    """Six digits; JSON has no NaN and no infinities."""
    value = float(value)
    return float(f"{value:.6g}") if abs(value) < numpy.inf else str(value)


def shown(value):
    """Anything a case returns, for JSON."""
    if isinstance(value, (bool, int, str, type(None))):
        return value
    if isinstance(value, float) and not isinstance(value, numpy.generic):
        return rounded(value)
    if isinstance(value, chainer.Variable):
        if value.array is None:
            return [type(value).__name__, None]
        return [type(value).__name__, *shown(value.array)]
    if isinstance(value, numpy.dtype):
        return str(value)
    if isinstance(value, numpy.generic):
        return rounded(value) if value.dtype.kind in "fiu" else shown(value.item())
    if isinstance(value, numpy.ndarray):
        return [str(value.dtype), list(value.shape), numbers(value)]
    if isinstance(value, dict):
        return {str(key): shown(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [shown(part) for part in value]
        return parts if type(value) is list else {type(value).__name__: parts}
    if isinstance(value, type):
        return "class " + value.__name__
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(map(str, value))}
    return "<" + type(value).__name__ + ">"


def outcome(run):
    """What ``run`` returns, or the error and its base classes."""
    numpy.random.seed(0)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return {"value": shown(run())}
        except Exception as error:
            names = [base.__name__ for base in type(error).__mro__[:-3]]
            return {"error": names, "message": str(error)[:200]}


def expression(text, module):
    return lambda: eval(text, dict(vars(module)))


def path_of(name):
    """Where a file of cases is in ``cases``; its outcomes are there in ``recorded``."""
    (path,) = (FOLDER / "cases").rglob(name + ".py")
    return path.relative_to(FOLDER / "cases")


def module_of(name):
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    parts = path_of(name).with_suffix("").parts
    return importlib.import_module(".".join(["cases", *parts]))


def cases(name):
    """The cases of a file, by their names."""
    module = module_of(name)
    lines = [line.strip() for line in getattr(module, "EXPRESSIONS", "").split("\n")]
    known = {line: expression(line, module) for line in lines if line}
    functions = {key: f for key, f in vars(module).items() if key.startswith("case_")}
    return {**known, **functions, **getattr(module, "GENERATED", {})}


def record(name, file):
    """Writes the outcomes of a file of cases, one a line."""
    lines = []
    known = cases(name)
    omitted = getattr(module_of(name), "OMITTED", None)
    before = os.getcwd()
    for case, run in known.items():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                found = outcome(run)
                if found.get("error", [""])[0] != omitted:
                    lines.append(f"{json.dumps(case)}: {json.dumps(found)}")
            finally:
                os.chdir(before)
    Path(file).write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    given = sys.argv[1]
    default = FOLDER / "recorded" / path_of(given).with_suffix(".json")
    record(given, sys.argv[2] if len(sys.argv) > 2 else default)
