import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import planning
from renga.parallel.plan import drawing
from renga.parallel.plan.drawing import Bar, figure
from renga.parallel.plan.plan import PlanRow


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.f1 = L.Linear(6, 64)
            self.f2 = L.Linear(64, 4)

    def forward(self, x):
        return self.f2(F.relu(self.f1(x)))


def plan(machine="1 node × 2 ranks, in nodes: 10 GB/s, 1 ms"):
    cluster = planning.Cluster.describe(machine)
    costs = planning.Costs(planning.Device(1e9, 1e9))
    x = np.ones((8, 6), np.float32)
    return planning.search(Net(), x, cluster, costs, seed=0, proposals=100)


def test_slow_messages_leave_every_layer_on_each_rank():
    # A message takes a millisecond, a step microseconds.
    found = plan()
    assert all(choice.is_kept for choice in found.links.values())
    # Ranks compare that they call the model with the same arguments, by one message.
    assert found.bytes_sent == 8 and found.seconds < 1.1e-3


def test_one_rank_has_nothing_to_choose():
    found = plan("1 node × 1 rank")
    assert found.seconds == found.data_seconds > 0
    assert all(choice.is_kept for choice in found.links.values())


def test_a_plan_is_the_same_from_its_file(tmp_path):
    found = plan()
    found.measured, found.grid = {"data": 0.25}, (2, 1)
    found.save(tmp_path / "plan.json")
    loaded = planning.Plan.load(tmp_path / "plan.json")
    assert loaded == found and loaded.name == found.name
    assert "data: 250.000 ms measured" in loaded.table()
    for text in ("{}", "[", '{"format": "renga plan 0"}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(ValueError, match="Plan: expected"):
            planning.Plan.load(tmp_path / "other.json")


def test_a_row_of_the_table_has_milliseconds_and_megabytes():
    cluster = planning.Cluster.describe("1 node × 2 ranks")
    row = PlanRow(
        "conv", "samples 2 on ranks 0-1", 1.5e-3, 2.5e6, 0.25e-3, "rows 2 (+3.0%)"
    )
    made = planning.Plan("net", cluster, 2e-3, 3e-3, [row])
    line, total = made.table().splitlines()[1:]
    assert line.split("  ")[0] == "conv"
    for text in ("1.500 ms", "2.500 MB", "0.250 ms", "rows 2 (+3.0%)"):
        assert text in line
    assert "2.000 ms predicted, data parallelism 3.000 ms (1.50x)" in total


def test_a_timeline_has_a_bar_for_each_task(tmp_path):
    pytest.importorskip("matplotlib")
    found = plan()
    ends = [bar.end for bar in found.timeline]
    assert max(ends) == found.seconds
    assert all(isinstance(bar, Bar) and bar.start < bar.end for bar in found.timeline)
    for rank in range(2):
        own = sorted(b for b in found.timeline if b.resource == rank)
        spans = sorted((b.start, b.end) for b in own)
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:]))
    found.draw(tmp_path / "plan.svg")
    assert "</svg>" in (tmp_path / "plan.svg").read_text()


def test_bars_are_drawn_where_tasks_are(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    made = []
    monkeypatch.setattr(
        drawing, "figure", lambda *size: made.append(figure(*size)) or made[-1]
    )
    bars = [
        Bar("forward", "f1", 0, 0.001, 0.003),
        Bar("forward", "f2", 0, 0.003, 0.007),
        Bar("forward", "f1", 1, 0.001, 0.001),  # takes no time
        Bar("sync", "f1", 5, 0.007, 0.008),  # of rank 1, by its other port
    ]
    drawing.draw_timeline(tmp_path / "plan.svg", bars, 2, "title")
    ((_, axes),) = made
    found = [
        [path.get_extents().bounds for path in drawn.get_paths()]
        for drawn in axes.collections
    ]
    forward, sync = ((1, -0.4, 2, 0.8), (3, -0.4, 4, 0.8)), ((7, 1.6, 1, 0.8),)
    assert [pytest.approx(span) for span in forward] == found[0]
    assert [pytest.approx(span) for span in sync] == found[1] and len(found) == 2
    lanes = [label.get_text() for label in axes.get_yticklabels()]
    assert lanes == ["rank 0", "rank 1", "rank 1: gradients and other nodes"]
    assert axes.get_xlim() == (0, 8)
