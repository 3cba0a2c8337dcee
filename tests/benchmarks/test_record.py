"""Verdicts of `make bench` on made-up measurements."""

import json

import pytest

from tests.benchmarks import record
from tests.benchmarks.training import Comparison

RECORDED = {"ratio": 2.0, "lowest": 1.9, "highest": 2.2}


@pytest.mark.parametrize(
    "lowest, highest, expected",
    [
        (1.5, 1.89, "SLOWER"),
        (1.5, 1.9, "as recorded"),  # the best round equals the worst recorded one
        (1.95, 2.1, "as recorded"),
        (1.0, 3.0, "as recorded"),
        (2.2, 2.4, "as recorded"),
        (2.21, 2.4, "faster"),
    ],
)
def test_verdict(lowest, highest, expected):
    found = Comparison({}, (lowest + highest) / 2, lowest, highest)
    assert record.verdict(found, RECORDED) == expected
    assert record.verdict(found, None) == "no record"


@pytest.fixture
def bench(monkeypatch, tmp_path, capsys):
    """Runs the program on given ratios (lowest, median, highest) of every row."""
    file = tmp_path / "record.json"
    monkeypatch.setattr(record, "RECORD", file)
    monkeypatch.setattr(record, "ROWS", [("vgg", 1, "float32"), ("mlp", 2, "float32")])

    def run(ratios, *arguments):
        def compare(model, threads, options):
            lowest, ratio, highest = ratios[model]
            return Comparison({}, ratio, lowest, highest)

        monkeypatch.setattr(record, "compare", compare)
        monkeypatch.setattr("sys.argv", ["record", "--peer", "python", *arguments])
        status = record.main()
        records = json.loads(file.read_text()) if file.exists() else {}
        return status, capsys.readouterr().out.splitlines(), records

    return run


def test_a_record_is_kept_for_each_cpu(bench, monkeypatch):
    ratios = {"vgg": (2.9, 3.0004, 3.1), "mlp": (1.0, 1.1, 1.2)}
    monkeypatch.setattr(record, "cpu", lambda: "one")
    status, lines, records = bench(ratios)
    assert (status, records) == (0, {})
    assert all(line.endswith("no record") for line in lines)
    assert bench(ratios, "--update")[2] == {
        "one": {
            "vgg, float32, 1 threads": {"ratio": 3.0, "lowest": 2.9, "highest": 3.1},
            "mlp, float32, 2 threads": {"ratio": 1.1, "lowest": 1.0, "highest": 1.2},
        }
    }
    monkeypatch.setattr(record, "cpu", lambda: "two")
    assert bench(ratios)[1][0].endswith("no record")
    assert set(bench(ratios, "--update")[2]) == {"one", "two"}


def test_one_slower_row_fails(bench):
    before = {"vgg": (2.9, 3.0, 3.1), "mlp": (1.0, 1.1, 1.2)}
    slower = {"vgg": (2.5, 2.6, 2.8), "mlp": (1.3, 1.4, 1.5)}
    bench(before, "--update")
    assert bench(before)[0] == 0
    status, lines, records = bench(slower)
    assert status == 1
    assert lines[0].split() == "vgg, float32, 1 threads 2.60 (2.50-2.80) SLOWER".split()
    assert lines[1].endswith("faster")
    (rows,) = records.values()
    assert rows["vgg, float32, 1 threads"]["ratio"] == 3.0
    # An update accepts what it finds.
    assert bench(slower, "--update")[0] == 0
    assert bench(slower)[0] == 0
