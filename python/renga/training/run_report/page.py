"""The page about runs: one file, which needs no network."""

from __future__ import annotations

import base64
import html
import importlib.util
import json
import mimetypes
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

from renga.core.types import Path
from renga.serializers.atomic import atomic_write
from renga.training.run_report import figures
from renga.training.run_report.run import Run, read

_MOST_ROWS = 100  # of a table
_STYLE = """
body { font: 16px/1.4 system-ui, sans-serif; margin: 0 auto; max-width: 90rem;
       padding: 0 1rem; color: #222 }
.grid { display: grid; gap: 1rem;
        grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)) }
.figure { height: 28rem; min-width: 0 }
.grid > * { min-width: 0; overflow-x: auto }
img { max-width: 100% } figure { margin: 0 }
table { border-collapse: collapse } td, th { padding: .1rem .6rem; text-align: left;
        border-bottom: 1px solid #ddd; overflow-wrap: break-word }
select { font: inherit; max-width: 100% }
"""
_SCRIPT = """
const draw = (id, f) => Plotly.react(id, f.data, f.layout,
                                     {responsive: true, displayModeBar: false});
const drawn = Object.entries(figures).map(([id, f]) => draw(id, f));
const chosen = document.getElementById("parameter");
if (chosen) {
  const show = () => draw("histogram", histograms[chosen.value]);
  chosen.onchange = show;
  drawn.push(show());
}
Promise.all(drawn).then(() => { document.body.dataset.drawn = drawn.length; });
"""


def write(folders: Iterable[Path], path: Path) -> None:
    """Writes a page about the runs in folders.

    A folder has the files that extensions wrote: ``log`` of LogReport, pictures, tables
    (``.csv``), parameters (``.npz``), traces of profiles (``.json``). Where it has
    folders with logs instead, these are repetitions of one run: their curves are drawn
    as a mean and a range.

    Raises:
        FileNotFoundError: a folder has no log.
        ImportError: plotly, which draws, is not installed.
    """
    runs = [read(folder) for folder in folders]
    with atomic_write(path, "w") as file:
        file.write(page(runs))


def page(runs: Sequence[Run]) -> str:
    """The text of the page."""
    names = ", ".join(run.name for run in runs)
    drawn: dict[str, figures.Figure] = {}
    sections = [
        _section("Curves", _divs("curve", figures.curves(runs), drawn)),
        _section("Last values", [_last_values(runs)]),
        _section("Pictures", [_picture(run, p) for run in runs for p in run.pictures]),
        _section(
            "Tables",
            [
                f"<figure>{_caption(run, p)}{_table(rows[:_MOST_ROWS])}</figure>"
                for run in runs
                for p, rows in run.tables
            ],
        ),
    ]
    parameters = figures.histograms(runs)
    if parameters:
        options = "".join(f"<option>{html.escape(name)}" for name in parameters)
        chosen = f'<select id="parameter" aria-label="parameter">{options}</select>'
        place = '<div class="figure" id="histogram"></div>'
        sections.append(_section("Parameters", [f"<div>{chosen}{place}</div>"]))
    times = [each for run in runs for each in figures.timelines(run)]
    sections.append(_section("Timelines", _divs("timeline", times, drawn)))
    for run in runs:
        for title, entries in run.about.items():
            rows = [[name, str(value)] for name, value in entries.items()]
            sections.append(_section(f"{run.name}: {title}", [_table(rows)]))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(names)}</title><style>{_STYLE}</style>
<script>{_plotly()}</script></head>
<body><h1>{html.escape(names)}</h1>
{"".join(sections)}
<script>const figures = {_json(drawn)}, histograms = {_json(parameters)};
{_SCRIPT}</script></body></html>
"""


def _plotly() -> str:
    """The text of the library that draws in browsers."""
    if importlib.util.find_spec("plotly") is None:
        raise ImportError(
            "report: expected plotly, which draws the page: install it with "
            "`pip install renga[report]`"
        )
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def _json(value: Any) -> str:
    """JavaScript of a value, which cannot end a script."""
    return json.dumps(value).replace("<", "\\u003c")


def _section(title: str, parts: Sequence[str]) -> str:
    if not parts:
        return ""
    return f'<h2>{html.escape(title)}</h2><div class="grid">{"".join(parts)}</div>'


def _divs(
    kind: str, found: Iterable[figures.Figure], drawn: dict[str, figures.Figure]
) -> list[str]:
    ids = {f"{kind}{i}": each for i, each in enumerate(found)}
    drawn.update(ids)
    return [f'<div class="figure" id="{name}"></div>' for name in ids]


def _last_values(runs: Sequence[Run]) -> str:
    logs = [run.logs for run in runs]
    keys = list(dict.fromkeys(k for log in sum(logs, []) for e in log for k in e))
    rows = [["", *(run.name for run in runs)]]
    for key in keys:
        row = [key]
        for repetitions in logs:
            row.append(_range([log[-1].get(key) for log in repetitions if log]))
        rows.append(row)
    return _table(rows)


def _range(values: Sequence[Any]) -> str:
    """The mean of the numbers among these, and the least and the largest."""
    numbers = [x for x in values if isinstance(x, (int, float))]
    if not numbers:
        return ""
    text = f"{sum(numbers) / len(numbers):.4g}"
    if len(numbers) == 1:
        return text
    return f"{text} ({min(numbers):.4g} to {max(numbers):.4g})"


def _picture(run: Run, path: pathlib.Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "image/webp"
    data = base64.b64encode(path.read_bytes()).decode()
    source = f"data:{kind};base64,{data}"
    name = html.escape(path.name)
    return f'<figure>{_caption(run, path)}<img src="{source}" alt="{name}"></figure>'


def _caption(run: Run, path: pathlib.Path) -> str:
    return f"<figcaption>{html.escape(run.place(path))}</figcaption>"


def _table(rows: Iterable[Sequence[str]]) -> str:
    lines = (
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table>{''.join(lines)}</table>"
