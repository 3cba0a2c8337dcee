"""Runs cases under whatever ``chainer`` is, and writes their outcomes.

``python record.py losses`` with Chainer 7.8.1 (Python 3.8, NumPy below 1.24) writes
``recorded/functions/losses.json``; ``python -m renga.chainer record.py losses FILE`` writes what
renga does into another file. With ``lines`` it reads such names and files, and runs each
in a process that it forks, as importing takes longest.

A file of cases has lines of expressions in ``EXPRESSIONS``, which see the module's own
names, and functions without arguments whose names begin with ``case_``. ``GENERATED``
has further functions by name, and ``OMITTED`` names an error that is no outcome.

``mpiexec -n 2 python record.py ranks`` with ChainerMN and mpi4py runs all files of
``cases/ranks`` and writes every rank's outcomes, in rank order, into
``recorded/ranks/2.json``. ``python -m renga.chainer record.py ranks FILE 2`` has ranks
that are threads. Expressions see ``comm``, ``rank``, ``size``, ``last`` and what
``names(comm)`` returns there, and functions take a communicator, each one of its own.
"""

import faulthandler
import importlib
import json
import os
import sys
import tempfile
import traceback
import warnings
from functools import partial
from pathlib import Path

import chainer
import numpy

FOLDER = Path(__file__).parent
# Arrays with more elements are shown by sums.
SHOWN = 12
# A case of ranks that hangs is a mistake in the case, or a finding.
SECONDS = 900


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


def evaluated(text, module, comm=None):
    if comm is None:
        return eval(text, dict(vars(module)))
    known = {"comm": comm, "rank": comm.rank, "size": comm.size, "last": comm.size - 1}
    return eval(text, {**known, **module.names(comm)})


def path_of(name):
    """Where a file of cases is in ``cases``; its outcomes are there in ``recorded``."""
    paths = (FOLDER / "cases").rglob(name + ".py")
    (path,) = (path for path in paths if path.parent.name != "ranks" or "/" in name)
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
    known = {line: partial(evaluated, line, module) for line in lines if line}
    functions = {key: f for key, f in vars(module).items() if key.startswith("case_")}
    return {**known, **functions, **getattr(module, "GENERATED", {})}


def outcomes(name):
    """The outcomes of a file of cases."""
    found = {}
    omitted = getattr(module_of(name), "OMITTED", None)
    before = os.getcwd()
    for case, run in cases(name).items():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                found[case] = outcome(run)
            finally:
                os.chdir(before)
    return {case: o for case, o in found.items() if o.get("error", [""])[0] != omitted}


def outcomes_of_rank(comm):
    """This rank's outcomes of all files of ``cases/ranks``."""
    return {
        f"{path.stem}: {case}": outcome(partial(run, comm.split(0, comm.rank)))
        for path in sorted((FOLDER / "cases/ranks").glob("*.py"))
        for case, run in cases(f"ranks/{path.stem}").items()
    }


def outcomes_of_ranks(comm):
    """The lists of all ranks' outcomes on rank 0; None on the others."""
    found = comm.gather_obj(outcomes_of_rank(comm))
    return found and {case: [rank[case] for rank in found] for case in found[0]}


def on_processes():
    import chainermn

    faulthandler.dump_traceback_later(SECONDS, exit=True)
    comm = chainermn.create_communicator("naive")
    found = outcomes_of_ranks(comm)
    faulthandler.cancel_dump_traceback_later()
    return comm.size, found


def on_threads(size):
    from renga.communicators import local

    return size, local.run(outcomes_of_ranks, ranks=size)[0]


def write(found, file):
    """One case a line."""
    lines = (f"{json.dumps(case)}: {json.dumps(found[case])}" for case in found)
    Path(file).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def fork(name, file):
    """Writes the outcomes of a file of cases, or why there are none; the exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.dup2(2, 1)  # cases may print
    status = 1
    try:
        write(outcomes(name), file)
        status = 0
    except BaseException:
        Path(file).write_text(traceback.format_exc())
    finally:
        os._exit(status)


if __name__ == "__main__":
    name, *others = sys.argv[1:]
    if name == "lines":
        for line in sys.stdin:
            print(fork(*line.split()), flush=True)
        sys.exit()
    if name == "ranks":
        size, found = on_threads(int(others[1])) if others[1:] else on_processes()
        default = f"ranks/{size}.json"
    else:
        found, default = outcomes(name), path_of(name).with_suffix(".json")
    if found is not None:
        write(found, others[0] if others else FOLDER / "recorded" / default)
