"""All cells, and random pairs of rows, in a process that may crash or hang.

``tools/combinations`` runs it. Each failing cell is printed with the command that
repeats it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime
import fnmatch
import io
import json
import os
import random
import select
import subprocess
import sys
import warnings

from tests.combinations.comparison import check, check_refused
from tests.combinations.row import can_pair, pair
from tests.combinations.table import COLUMNS, ROWS, cell

SECONDS = 90  # of a cell before it counts as hung


def named(name):
    """The cell of a name such as ``column: row + row``."""
    column, _, rows = name.partition(": ")
    (column,) = [each for each in COLUMNS if each.name == column]
    rows = [each for part in rows.split(" + ") for each in ROWS if each.name == part]
    return cell(rows[0] if len(rows) == 1 else pair(*rows), column)


def outcome(name):
    """``equal`` or ``refused``, or what is wrong with a cell."""
    chosen = named(name)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if chosen.refused is not None:
                check_refused(chosen.row, chosen.column, chosen.refused)
                return "refused"
            check(chosen.row, chosen.column)
    except BaseException as error:
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text}"
    return "equal"


def serve():
    """The worker: a name on each line of input, an outcome on each of output."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(outcome(json.loads(line))), file=out, flush=True)


class Worker:
    """A process that runs cells; another one when it has crashed or hangs."""

    process: subprocess.Popen | None = None

    def run(self, name):
        """The outcome of a cell."""
        if self.process is None:
            command = [sys.executable, "-m", "tests.combinations.sweep", "--worker"]
            pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            environment = {"RENGA_TIMEOUT": "10", "OMP_NUM_THREADS": "1", **os.environ}
            self.process = subprocess.Popen(
                command, stderr=subprocess.DEVNULL, text=True, env=environment, **pipes
            )
        print(json.dumps(name), file=self.process.stdin, flush=True)
        answered, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        line = self.process.stdout.readline() if answered else ""
        if line:
            return json.loads(line)
        self.process.kill()
        code = self.process.wait()
        self.process = None
        return f"crashed with {code}" if answered else f"hung for {SECONDS} s"

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def single_cells(rows, columns):
    """The names of the cells that make sense."""
    for row in ROWS:
        for column in COLUMNS:
            chosen = fnmatch.fnmatchcase(row.name, rows)
            if chosen and fnmatch.fnmatchcase(column.name, columns):
                if cell(row, column).absent is None:
                    yield f"{column.name}: {row.name}"


def random_pairs(seed, count):
    """The names of cells of two rows each, whose own cells are equal."""
    generator, found = random.Random(seed), set()
    while len(found) < count:
        a, b = generator.sample(ROWS, 2)
        column = generator.choice(COLUMNS)
        cells = [cell(a, column), cell(b, column)]
        if any(each.absent or each.refused or each.opened for each in cells):
            continue
        if can_pair(a, b) and cell(pair(a, b), column).absent is None:
            name = f"{column.name}: {a.name} + {b.name}"
            if name not in found:
                found.add(name)
                yield name


def main():
    parser = argparse.ArgumentParser(prog="tools/combinations", description=__doc__)
    today = datetime.date.today().strftime("%Y%m%d")
    parser.add_argument("--seed", type=int, default=int(today), help="of the pairs")
    parser.add_argument("--pairs", type=int, default=300, help="how many are drawn")
    parser.add_argument("--rows", default="*", help="a pattern of names")
    parser.add_argument("--columns", default="*", help="a pattern of names")
    parser.add_argument("--only", nargs="*", help="cells by name, and nothing else")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        serve()
        return 0
    names = options.only
    if names is None:
        names = list(single_cells(options.rows, options.columns))
        names += random_pairs(options.seed, options.pairs)
    return report(names)


def report(names):
    """Runs cells and prints what is wrong with them; 1 if something is."""
    worker, counts = Worker(), collections.Counter()
    for name in names:
        found = worker.run(name)
        is_open = cell_is_open(name)
        kind = found if found in ("equal", "refused") else "failed"
        counts["open" if is_open and kind == "failed" else kind] += 1
        if kind == "failed" and not is_open:
            print(f"tools/combinations --only {json.dumps(name)}\n    {found[:300]}")
            sys.stdout.flush()
    worker.end()
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return int(counts["failed"] > 0)


def cell_is_open(name):
    return named(name).opened is not None


if __name__ == "__main__":
    sys.exit(main())
