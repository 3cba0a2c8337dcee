"""The page about runs: what it shows, and that a browser draws it."""

import base64
import csv
import json
import re
import shutil
import subprocess

import numpy
import pytest

from renga import cli
from renga.training import run_report
from renga.training.run_report import figures, page
from renga.training.run_report.run import read

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
TRACE = [
    {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "rank"}},
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 7, "args": {"name": "main"}},
    {"name": "relu", "ph": "X", "pid": 1, "tid": 7, "ts": 3000, "dur": 500},
    {"name": "linear", "ph": "X", "pid": 1, "tid": 7, "ts": 1000, "dur": 2000},
]


def write_log(folder, losses):
    folder.mkdir(parents=True)
    log = [
        {"main/loss": loss, "validation/main/loss": 2 * loss, "lr": 0.1}
        | {"epoch": i, "iteration": 10 * i, "elapsed_time": 1.5}
        for i, loss in enumerate(losses, 1)
    ]
    (folder / "log").write_text(json.dumps(log))


@pytest.fixture
def folders(tmp_path):
    """A run that was repeated, and one with files of every kind."""
    write_log(tmp_path / "first" / "0", [4.0, 2.0])
    write_log(tmp_path / "first" / "1", [8.0, 3.0])
    second = tmp_path / "b<c"
    write_log(second, [1.0, float("nan")])
    (second / "plot.png").write_bytes(b"a picture")
    with (second / "words.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["word", "count"], ["</td>", "3"]])
    numpy.savez(second / "model.npz", W=numpy.float32([0, 1, 1, 4]), n=numpy.arange(3))
    (second / "trace.json").write_text(json.dumps({"traceEvents": TRACE}))
    (second / "about.json").write_text(json.dumps({"program": {"lr": 0.25}}))
    (second / "other.json").write_text("[1]")
    return [tmp_path / "first", second]


@pytest.fixture
def without_library(monkeypatch):
    monkeypatch.setattr(page, "_plotly", lambda: "")


def test_curves_have_means_and_ranges(folders):
    drawn = figures.curves([read(folder) for folder in folders])
    titles = [figure["layout"]["title"]["text"] for figure in drawn]
    assert titles == ["loss by iteration", "lr by iteration"]
    traces = drawn[0]["data"]
    band, mean = traces[:2]
    assert mean["name"] == "first main/loss"
    assert (mean["x"], mean["y"]) == ([10, 20], [6.0, 2.5])
    assert band["x"] == [10, 20, 20, 10] and band["y"] == [8.0, 3.0, 2.0, 4.0]
    # The range and the mean of a run, then those of validation; one curve each of b<c.
    assert [t.get("name") for t in traces[2:]] == [
        None,
        "first validation/main/loss",
        "b<c main/loss",
        "b<c validation/main/loss",
    ]
    assert traces[3]["line"]["color"] == mean["line"]["color"] != traces[4]["line"]
    assert traces[3]["line"]["dash"] == "dash"


def test_histograms(folders):
    (name, figure), *others = figures.histograms(map(read, folders)).items()
    assert name == "W" and not others
    (bars,) = figure["data"]
    assert sum(bars["y"]) == 4 and (bars["y"][0], bars["y"][-1]) == (1, 1)
    numpy.testing.assert_allclose(bars["x"][0], 0.05)  # of 40 bins from 0 to 4
    assert bars["y"][10] == 2


def test_timelines(folders):
    (figure,) = figures.timelines(read(folders[1]))
    found = {t["name"]: (t["base"], t["x"], t["y"]) for t in figure["data"]}
    assert found == {
        "linear": ([0.0], [2.0], ["rank main"]),
        "relu": ([2.0], [0.5], ["rank main"]),
    }


def test_page(folders, tmp_path, without_library):
    path = tmp_path / "page.html"
    run_report.write(folders, path)
    text = path.read_text()
    assert "<title>first, b&lt;c</title>" in text and "b<c" not in text
    assert "<td>first</td>" not in text.split("Last values")[0]
    assert "<td>2.5 (2 to 3)</td>" in text
    assert base64.b64encode(b"a picture").decode() in text
    assert "<td>&lt;/td&gt;</td><td>3</td>" in text
    assert "<td>lr</td><td>0.25</td>" in text
    # Nothing comes from elsewhere.
    assert not re.findall(r'(?:src|href)="(?!data:)', text) and "http" not in text


def test_program(folders, tmp_path, without_library, capsys):
    out = tmp_path / "page.html"
    assert cli.main(["report", *map(str, folders), "-o", str(out)]) == 0
    assert out.exists() and capsys.readouterr().out == f"wrote {out}\n"


def test_errors(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="expected a file log of LogReport"):
        run_report.write([tmp_path], tmp_path / "page.html")
    write_log(tmp_path / "run", [1.0])
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install renga\[report\]"):
        run_report.write([tmp_path / "run"], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


# Writes the widths of the page, as a telephone shows it, into its own title.
FRAME = """<iframe src="page.html" style="width: 390px; height: 800px"></iframe><script>
const frame = document.querySelector("iframe");
const look = () => {
  const page = frame.contentDocument, drawn = page?.body?.dataset.drawn;
  if (!drawn) return setTimeout(look, 50);
  document.title = [drawn, page.querySelectorAll(".main-svg").length > 0,
                    page.documentElement.scrollWidth <= 390].join();
};
look();
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium")
@pytest.mark.parametrize("narrow", [False, True])
def test_a_browser_draws_the_page(folders, tmp_path, narrow):
    pytest.importorskip("plotly")
    run_report.write(folders, tmp_path / "page.html")
    (tmp_path / "frame.html").write_text(FRAME)
    shown = tmp_path / ("frame.html" if narrow else "page.html")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [
        "--allow-file-access-from-files",
        f"--user-data-dir={tmp_path / 'user'}",
    ]
    # No server listens at this port.
    command += ["--proxy-server=127.0.0.1:9", "--virtual-time-budget=20000"]
    done = subprocess.run(
        [*command, shown.as_uri()], capture_output=True, text=True, check=True
    )
    # Two figures of curves, one timeline and the histogram.
    if narrow:
        assert "<title>4,true,true</title>" in done.stdout
    else:
        assert 'data-drawn="4"' in done.stdout and 'class="main-svg"' in done.stdout
