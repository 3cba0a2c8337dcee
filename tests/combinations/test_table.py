"""That the table has every feature and every way, and that its page is current."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path

import pytest

from renga.distributed import asynchronous, create_groups, create_multi_node_optimizer
from renga.parallel.parallelize import STRATEGIES
from renga.parallel.pipeline.schedule import SCHEDULES
from renga.parallel.pipeline.weights import KINDS
from renga.parallel.plan.plan import Plan
from tests.combinations.columns.multi_node import MultiNode
from tests.combinations.comparison import check_file
from tests.combinations.reference import Formula, reference
from tests.combinations.row import can_pair, pair
from tests.combinations.rows.resuming import ResumedElsewhere
from tests.combinations.table import CELLS, COLUMNS, OPEN, REFUSED, ROWS, absence

DOCS = Path(__file__).resolve().parents[2] / "docs"

FEATURES = """
tied parameter / one link under two names / parameter used beside its link /
lazily shaped parameter / empty parameter / 0-d parameter /
one slope for all channels /
parameter that some steps do not use / parameter that some ranks do not use /
frozen before the first update / frozen and unfrozen later / rate of one parameter /
hyperparameter of one parameter / LoRA / rate changed on the way / weight decay /
weight decay, later / gradient clipping / gradient clipping, later /
weights changed in place / weights replaced / weights loaded between updates /
copyparams between updates / batch normalization / dropout / uneven batches /
a rank without samples / ignored labels / dict batches / tuple batches /
namedtuple batches / time-major batches / closures / stateful recurrent link /
two networks with two optimizers / gradient penalty / recomputed by F.forget /
accumulation by two backward passes / gradients added up over updates /
plain program / float32 /
mixed16 with an overflow on one rank / bfloat16 / moving average /
evaluation between updates / save and resume / save and resume, rank 0 alone /
save and resume, other ranks / save and resume after join() /
an exception on one rank
"""

# The columns stand for these, apart from what the tests below find in the package.
WAYS = """
create_multi_node_optimizer / with overlap / without overlap / compression /
double_buffering / accumulate / zero_fill / shard=states / shard=gradients /
shard=parameters / local SGD, every=1 / parameter server, staleness=0 /
with an example / without an example / plan: groups / plan: groups and channels /
plan: stages / simulated ranks / elastic restart / recompute / nodes / messages
"""


def names(text):
    return [" ".join(each.split()) for each in text.split(" / ")]


def covered():
    return {way for column in COLUMNS for way in column.covers}


@pytest.mark.parametrize("feature", names(FEATURES.replace("/\n", "/ ")))
def test_a_feature_is_a_row(feature):
    assert feature in {row.name for row in ROWS}


@pytest.mark.parametrize("way", names(WAYS.replace("/\n", "/ ")))
def test_a_way_is_a_column(way):
    assert way in covered()


def test_names_are_distinct():
    for table in (ROWS, COLUMNS):
        assert len({each.name for each in table}) == len(table)


def test_every_public_way_has_a_column():
    public = {f"parallelize: {strategy}" for strategy in STRATEGIES}
    public |= {f"schedule: {schedule}" for schedule in SCHEDULES}
    public |= {f"weights: {kind}" for kind in KINDS}
    public |= {each for each in asynchronous.__all__ if each.endswith("_optimizer")}
    public |= {"dpsgd", "sgp", "adpsgd", "gosgd"}
    options = list(inspect.signature(create_multi_node_optimizer).parameters)[2:]
    public |= set(options) - {"shard"}
    groups = list(inspect.signature(create_groups).parameters)[2:]
    public |= {f"create_groups: {kind}" for kind in groups}
    assert not public - covered()


def test_plans_have_no_other_kinds():
    kinds = {"links", "grid", "stages", "groups"}
    assert kinds < set(inspect.signature(Plan).parameters)


def test_few_cells_are_refused():
    cells = [each for each in CELLS if each.absent is None]
    refused = [each for each in cells if each.refused is not None]
    assert len(refused) <= 0.05 * len(cells)


def test_exceptions_have_cells():
    for each in (*REFUSED, *OPEN):
        assert any(each.has(cell.row, cell.column) for cell in CELLS), each


def test_the_page_is_up_to_date():
    script = runpy.run_path(str(DOCS / "scripts/make_combinations.py"))
    page = (DOCS / "parallel/combinations.md").read_text()
    assert page == script["page"](), "run `make docs`"


def rows_on_other_ranks():
    """Those that another number of ranks may go on with, and that end."""
    elsewhere = ResumedElsewhere()
    for row in ROWS:
        if row.raises is None and can_pair(row, elsewhere):
            if absence(pair(row, elsewhere), MultiNode()) is None:
                yield row


@pytest.mark.parametrize("row", list(rows_on_other_ranks()), ids=repr)
def test_a_row_trains_the_same_model_on_any_number_of_ranks(row):
    """Its loss is a mean over samples, so that ranks may cut a batch anywhere."""
    one, three = (reference(row, row.kinds[0], n, 1, Formula) for n in (1, 3))
    for name, file in one.files[0].items():
        check_file(three.files[0][name], file, row.tolerance, False, name)
