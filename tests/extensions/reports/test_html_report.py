"""HtmlReport: a page that is written while a model trains."""

import json

import numpy
import pytest

import renga
import renga.links as L
from renga import training
from renga.training import extensions
from renga.training.run_report import page


def test_the_page_shows_every_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "_plotly", lambda: "")
    data = [(numpy.float32([i, 1]), numpy.int32(i % 2)) for i in range(8)]
    model = L.Classifier(L.Linear(2, 2))
    optimizer = renga.optimizers.SGD().setup(model)
    iterator = renga.iterators.SerialIterator(data, 4)
    updater = training.StandardUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (3, "epoch"), out=tmp_path / "run")
    trainer.extend(extensions.HtmlReport(arguments={"rate": 0.5}))
    trainer.extend(extensions.LogReport())
    seen = []

    def look(trainer):
        seen.append((tmp_path / "run" / "report.html").read_text())

    trainer.extend(look, trigger=(1, "epoch"), priority=-1000)
    trainer.run()
    assert len(seen) == 3
    for epoch, text in enumerate(seen, 1):
        (x,) = {
            tuple(trace["x"])
            for figure in figures_of(text).values()
            for trace in figure["data"]
        }
        assert x == tuple(2 * i for i in range(1, epoch + 1))
        assert "<td>rate</td><td>0.5</td>" in text
        assert f"<td>{numpy.__version__}</td>" in text


def figures_of(text):
    start = text.index("const figures = ") + len("const figures = ")
    return json.JSONDecoder().raw_decode(text[start:])[0]


def test_other_runs_are_shown_beside(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "_plotly", lambda: "")
    with pytest.raises(FileNotFoundError, match="missing"):
        extensions.HtmlReport(others=[str(tmp_path / "missing")])(trainer_in(tmp_path))
    extensions.HtmlReport("page.html", [str(tmp_path)])(trainer_in(tmp_path))
    names = {
        t["name"] for f in figures_of(text_of(tmp_path)).values() for t in f["data"]
    }
    assert names == {f"{tmp_path.name} loss"}


def trainer_in(folder):
    (folder / "log").write_text(json.dumps([{"loss": 1.0, "iteration": 1}]))
    iterator = renga.iterators.SerialIterator([0], 1)
    optimizer = renga.optimizers.SGD().setup(L.Linear(1, 1))
    updater = training.StandardUpdater(iterator, optimizer)
    return training.Trainer(updater, out=str(folder))


def text_of(folder):
    return (folder / "page.html").read_text()
