"""The course on asynchronous training: the comparison and its pictures."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.timeout(300)


def test_every_method_learns_and_some_do_not_wait(run_offline, tmp_path):
    pytest.importorskip("matplotlib")
    options = ["--ranks", 4, "--gbits", 1, "--epochs", 4, "--rate", 0.05]
    done = run_offline("10_asynchronous/compare.py", *options)
    curves = json.loads((tmp_path / "curves.json").read_text())["1.0"]
    assert [line.split()[1] for line in done.lines[1:]] == [
        name.split()[0] for name in curves
    ]
    assert (tmp_path / "curves.png").stat().st_size > 0
    images = {row["images"] for row in curves.values()}
    assert len(images) == 1
    for name, row in curves.items():
        assert row["accuracy"] > (60 if name == "A-SGD" else 80), name
    # Three ranks of full speed and one of a quarter of it, against four of a quarter.
    fast = curves["AD-PSGD"]["seconds"], curves["A-SGD"]["seconds"]
    assert max(fast) < 0.5 * curves["synchronous"]["seconds"]


def test_the_picture_of_waiting_ranks(run_offline, tmp_path):
    pytest.importorskip("matplotlib")
    run_offline("10_asynchronous/timelines.py", "--out", tmp_path / "picture.svg")
    assert "AD-PSGD" in (tmp_path / "picture.svg").read_text()
