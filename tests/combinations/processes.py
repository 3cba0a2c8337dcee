"""Cells on two processes: ``mpiexec -n 2 python -m tests.combinations.processes FILE``.

One start runs all of them and writes their outcomes. In the end rank 0 raises an
exception of the program's own.
"""

from __future__ import annotations

import json
import sys

from renga.distributed import create_communicator
from tests.combinations.comparison import check, check_refused
from tests.combinations.rows.training import Broken
from tests.combinations.table import CELLS

ROWS = (
    *("plain program", "tied parameter", "uneven batches", "Adam", "moving average"),
    *("weights loaded between updates", "copyparams between updates", "dropout"),
    *("batch normalization", "frozen and unfrozen later"),
)


def cells():
    """Those whose path is another one than with threads: copies and files.

    Those are chosen that are refused, and a third that threads do not have.
    """
    for cell in CELLS:
        files = "resume" in cell.row.traits and "other ranks" not in cell.row.traits
        if cell.column.in_processes and cell.absent is None and cell.is_chosen(1):
            if files or cell.row.name in ROWS:
                yield cell


def outcome(comm, cell):
    """What is wrong with a cell on this rank, or an empty text."""

    def launch(row, act, ranks):
        return comm.allgather_obj(act(comm))

    cell.column.launch = launch
    try:
        if cell.refused is not None:
            check_refused(cell.row, cell.column, cell.refused)
        elif comm.rank == 0:
            check(cell.row, cell.column)
        else:
            cell.column.run(cell.row)  # rank 0 compares what all ranks have
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        del cell.column.launch
    return ""


def main(path):
    comm = create_communicator()
    found = {}
    for cell in cells():
        texts = comm.allgather_obj(outcome(comm, cell))
        found[cell.name] = "; ".join(text for text in texts if text)
        if comm.rank == 0:
            with open(path, "w") as file:
                json.dump(found, file)
    if comm.rank == 0:
        raise Broken(3, step=2)
    comm.barrier()


if __name__ == "__main__":
    main(sys.argv[1])
