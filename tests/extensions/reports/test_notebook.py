"""Reports in the kernel of a notebook: tables of HTML and bars of widgets."""

import os

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = [
    pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts a kernel"),
    pytest.mark.timeout(120),
]

SOURCE = """
import numpy
import renga
import renga.links as L
from renga import training
from renga.training import extensions

data = [(numpy.zeros(2, "f"), numpy.int32(0))] * 4
optimizer = renga.optimizers.SGD().setup(L.Classifier(L.Linear(2, 2)))
iterator = renga.iterators.SerialIterator(data, 2)
updater = training.StandardUpdater(iterator, optimizer)
trainer = training.Trainer(updater, (3, "epoch"), out="result")
trainer.extend(extensions.LogReport())
trainer.extend(extensions.PrintReport(["epoch", "main/loss"]))
"""
BARS = """
trainer.extend(extensions.ProgressBar(update_interval=1))
test = renga.iterators.SerialIterator(data, 2, repeat=False)
trainer.extend(extensions.Evaluator(test, optimizer.target, progress_bar=True))
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Of a table, of bars beside it, and of bars without widgets: in one kernel."""
    hidden = "import sys; sys.modules['ipywidgets'] = None\n"
    sources = SOURCE, SOURCE + BARS, hidden + SOURCE + BARS
    cells = [nbformat.v4.new_code_cell(code + "trainer.run()") for code in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    nbclient.NotebookClient(notebook, timeout=100, resources=resources).execute()
    return [cell.outputs for cell in notebook.cells]


def tables(outs):
    return [o.data for o in outs if "<table>" in o.get("data", {}).get("text/html", "")]


def test_a_table_that_grows(outputs):
    (out,) = outputs[0]
    (table,) = tables([out])
    assert table["text/html"].count("<tr>") == 4  # titles and three epochs
    assert "<th>main/loss</th>" in table["text/html"]
    lines = table["text/plain"].splitlines()
    assert lines[0].split() == ["epoch", "main/loss"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "2", "3"]


def test_bars(outputs):
    pytest.importorskip("ipywidgets")
    assert len(tables(outputs[1])) == 1
    # Nothing is printed: bars are widgets, which vanish in the end.
    assert not [o for o in outputs[1] if o.output_type == "stream"]


def test_lines_without_widgets(outputs):
    text = "".join(o.text for o in outputs[2] if o.output_type == "stream")
    assert "6 iter, 3 epoch / 3 epochs" in text and "\r" not in text
