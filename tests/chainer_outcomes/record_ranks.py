"""Runs the cases of ``rank_cases`` on several ranks, and writes every rank's outcomes.

``mpiexec -n 2 python record_ranks.py`` with ChainerMN 7.8.1 and mpi4py writes
``recorded_ranks/2.json``; ``mpiexec -n 2 python -m renga.chainer record_ranks.py FILE``
writes what renga does into another file, and so does
``python -m renga.chainer record_ranks.py FILE 2`` with ranks that are threads.

A file of cases has lines of expressions in ``EXPRESSIONS``, which see ``comm``,
``rank``, ``size``, ``last`` and what ``names(comm)`` returns, and functions of a
communicator whose names begin with ``case_``. Each gets a communicator of its own.
"""

import faulthandler
import importlib
import json
import sys
from pathlib import Path

import chainermn
from record import FOLDER, outcome

FILES = sorted(path.stem for path in (FOLDER / "rank_cases").glob("*.py"))
# A case that hangs is a mistake in the case, or a finding.
SECONDS = 900


def evaluated(text, module, comm):
    last = comm.size - 1
    known = {"comm": comm, "rank": comm.rank, "size": comm.size, "last": last}
    return eval(text, {**known, **module.names(comm)})


def cases(name):
    """The cases of a file: functions of a communicator, by their names."""
    module = importlib.import_module("rank_cases." + name)
    lines = [line.strip() for line in getattr(module, "EXPRESSIONS", "").split("\n")]
    known = {
        line: lambda comm, line=line: evaluated(line, module, comm)
        for line in lines
        if line
    }
    functions = {key: f for key, f in vars(module).items() if key.startswith("case_")}
    return {**known, **functions}


def outcomes(comm):
    """This rank's outcomes of all cases, by file and name."""
    return {
        name: {
            case: outcome(lambda run=run: run(comm.split(0, comm.rank)))
            for case, run in cases(name).items()
        }
        for name in FILES
    }


def write(found, file):
    """One case a line, with the outcomes in rank order."""
    lines = [
        f"{json.dumps(name + ': ' + case)}: "
        f"{json.dumps([rank[name][case] for rank in found])}"
        for name in FILES
        for case in found[0][name]
    ]
    Path(file).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def on_processes(file):
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    comm = chainermn.create_communicator("naive")
    found = comm.gather_obj(outcomes(comm))
    faulthandler.cancel_dump_traceback_later()
    if comm.rank == 0:
        write(found, file or FOLDER / "recorded_ranks" / f"{comm.size}.json")


def on_threads(file, size):
    from renga.communicators import local

    write(local.run(outcomes, ranks=size), file)


if __name__ == "__main__":
    given = sys.argv[1:]
    if len(given) > 1:
        on_threads(given[0], int(given[1]))
    else:
        on_processes(given[0] if given else None)
