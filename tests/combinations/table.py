"""The table: which cells there are, and what each gives."""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
from typing import Any

from tests.combinations.columns import COLUMNS
from tests.combinations.rows import ROWS


@dataclasses.dataclass(frozen=True)
class Exceptional:
    """Cells that do not equal the reference.

    Args:
        rows, columns: patterns of names, as of file names.
        text: of the error by which they are refused; or why they still fail.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    text: str

    def has(self, row, column):
        return matches(row.name, self.rows) and matches(column.name, self.columns)


@functools.cache  # each name is asked for in thousands of cells
def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, each) for each in patterns)


# Refused by an error before any parameter of the step changes.
STREAMS = ("pipeline, pipedream*",)
PIPELINES = ("pipeline, *", "plan with stages", "grid, * and stages")

REFUSED = [
    Exceptional(
        ("gradient clipping*", "mixed16*", "leaf beside*"),
        STREAMS,
        "expected a schedule that flushes",
    ),
    Exceptional(
        (
            "LAMB",
            "save and resume, own update rule",
            "own update rule that makes arrays",
        ),
        ("pipeline, pipedream, spectrain", "pipeline, pipedream, pipeoptim"),
        "expected a rule that can predict",
    ),
    Exceptional(
        ("gradient penalty", "penalty on gradients of parameters"),
        PIPELINES,
        "grad: expected a graph on one rank",
    ),
    Exceptional(
        ("update rule replaced",),
        ("parameter server*",),
        "update: expected the update rule of W that it had",
    ),
    Exceptional(
        ("function over channels in some steps", "0-d parameter in some steps"),
        (
            *("channel", "channel, images", "channel, 3 ranks, transformers"),
            *("grid, data and channel", "grid, sharded states and channel"),
        ),
        "expected functions that the model has called with the example",
    ),
    Exceptional(
        ("own hook that changes the rate",),
        ("parameter server*",),
        "create_server_optimizer: expected hooks that change no hyperparameters",
    ),
    Exceptional(
        ("parameter deleted on the way",),
        (
            *("local SGD*", "DiLoCo", "elastic averaging", "D-PSGD", "AD-PSGD"),
            *("stochastic*", "GoSGD", "parameter server*", "Hogwild"),
        ),
        "update: expected the 9 parameters that had shapes in the first update",
    ),
    Exceptional(
        ("* cut off by unchain_backward",),
        ("plan by samples*",),
        "unchain_backward: expected a graph that begins with parameters",
    ),
    Exceptional(
        ("loss that the model keeps for the loop",),
        PIPELINES,
        "Model.kept_loss: expected it to be read within the model",
    ),
    Exceptional(
        ("statistics of parameters",),
        PIPELINES,
        "ParameterStatistics: expected parameters that this rank has",
    ),
    Exceptional(
        ("own hook of all gradients", "own hook that changes the rate"),
        PIPELINES,
        "Pipeline: expected hooks of renga.optimizer_hooks",
    ),
    Exceptional(
        ("activation that the loss reads",),
        (
            *("channel", "channel, images", "channel, 3 ranks, transformers"),
            *("spatial*", "sequence*", "plan by samples*"),
            *("grid, data and channel", "grid, data and spatial"),
            "grid, sharded states and channel",
        ),
        "Model.kept: expected it to be read within the model",
    ),
    Exceptional(
        (
            "number that the model keeps of an activation",
            "activation that goes on without a graph",
        ),
        PIPELINES,
        "pipeline: lossfun reads elements of a variable of another stage",
    ),
    Exceptional(
        ("number that the model keeps of an activation",),
        (
            *("spatial*", "sequence*", "plan by samples*"),
            "grid, data and spatial",
        ),
        "Model.squares: expected it to be read within the model",
    ),
    Exceptional(
        ("number of rows or tokens read in some steps",),
        ("spatial*", "sequence*", "grid, data and spatial"),
        "it reads shapes or elements of activations",
    ),
    Exceptional(
        ("number of samples read in some steps",),
        ("plan by samples*",),
        "it reads shapes or elements of activations",
    ),
    Exceptional(
        ("targets in a closure",),
        PIPELINES,
        "Pipeline: expected a function that takes a part of a batch",
    ),
    Exceptional(
        ("closures*",), STREAMS, "Pipeline: expected batches of at least 2 samples"
    ),
    Exceptional(
        ("rank 0 alone loads weights later",),
        STREAMS,
        "expected every rank to call the same while batches are on their way",
    ),
    Exceptional(
        ("rank 0 alone loads weights later",),
        ("accumulate*",),
        "expected the same parameters on all ranks until 2 batches are accumulated",
    ),
    Exceptional(
        ("mixed16*", "save and resume, float16*", "a link in float16"),
        ("Hogwild",),
        "expected parameters in float32 or float64",
    ),
    Exceptional(
        ("weight standardization, later",),
        ("channel*", "grid, data and channel", "grid, sharded states and channel"),
        "WeightStandardization: expected a link whose weight every rank has",
    ),
    Exceptional(
        ("gradients added up over updates",),
        ("double buffering", "shard=*", "grid, sharded*", "parameter server*"),
        "update: expected gradients that were cleared",
    ),
    Exceptional(
        ("recomputed by F.forget",),
        ("spatial*", "sequence*", "grid, data and spatial"),
        "Forget: expected gather_(image|sequence) before it",
    ),
    Exceptional(
        ("two parameters with one array",),
        ("shard=*", "grid, sharded*", "parameter server*", "Hogwild"),
        "expected parameters that share no memory",
    ),
]

# Neither equal nor refused yet.
OPEN: list[Exceptional] = []


@dataclasses.dataclass(frozen=True)
class Cell:
    """A row on a column.

    Args:
        absent: why it makes no sense, if it does not.
        refused: the pattern of the error, if it is refused.
        opened: why it still fails, if it does.
    """

    row: Any
    column: Any
    absent: str | None = None
    refused: str | None = None
    opened: str | None = None

    @property
    def name(self):
        return f"{self.column.name}: {self.row.name}"

    def is_chosen(self, diagonal):
        """Whether it is refused, fails, or is on a diagonal of every three, 0 to 2."""
        if self.refused is not None or self.opened is not None:
            return True
        return (ROWS.index(self.row) + COLUMNS.index(self.column)) % 3 == diagonal


def cell(row, column):
    """The cell of a row and a column."""
    refused = next((each.text for each in REFUSED if each.has(row, column)), None)
    opened = next((each.text for each in OPEN if each.has(row, column)), None)
    return Cell(row, column, absence(row, column), refused, opened)


# Traits of which two rows together make no sense.
APART = {
    ("resume", "state"): "files do not have the states of recurrent links",
    ("closure", "uneven"): "ranks do not see the samples of a closure",
    ("gradients by hand", "rank 0 writes"): "replaced weights' gradients are dropped",
    ("own optimizer", "rounded"): "signs of rounding errors decide normalized steps",
    ("gradients of before", "resume"): "files have no gradients",
    ("by hand", "rank 0 writes later"): "others change weights they have not got yet",
    ("own objects", "rank 0 loads"): "each rank has a moving average of its own",
    ("integers", "real inputs"): "integers have no dropout",
    ("other ranks", "leaf"): "a leaf has the gradients of the samples of its rank",
    ("other ranks", "sizes"): "the sizes of the batches depend on the ranks",
    ("other ranks", "own samples"): "what a rank computes depends on the ranks",
    ("other ranks", "samples read"): "what a rank computes depends on the ranks",
    ("random", "resume"): "files do not have the states of random generators",
}


def absence(row, column):
    """Why a cell makes no sense, or None."""
    for traits, reason in {**APART, **column.apart}.items():
        if row.traits.issuperset(traits):
            return reason
    for trait in sorted(row.traits):
        if trait in column.lacks:
            return column.lacks[trait]
    if column.kind(row) is None:
        return f"it needs {' or '.join(column.kinds)}"
    return None


CELLS = [cell(row, column) for row in ROWS for column in COLUMNS]
