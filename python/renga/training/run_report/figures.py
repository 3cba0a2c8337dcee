"""Figures about runs, as plotly draws them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from renga.training.run_report.run import Log, Run

Figure = dict[str, Any]
_TIMES = ("epoch", "iteration", "elapsed_time")
_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#17becf")
_DASHES = ("solid", "dash", "dot", "dashdot")
_MOST_EVENTS = 4000  # of a timeline


def curves(runs: Sequence[Run]) -> list[Figure]:
    """A figure for each quantity, with the curves of all runs.

    Of repetitions it has the mean, and the range from the least to the largest.
    """
    logs = [run.logs for run in runs]
    keys = dict.fromkeys(k for log in sum(logs, []) for entry in log for k in entry)
    quantities: dict[str, list[str]] = {}
    for key in keys:
        if key not in _TIMES:
            quantities.setdefault(key.rpartition("/")[2], []).append(key)
    figures = []
    for quantity, names in quantities.items():
        traces: list[Figure] = []
        for i, (run, repetitions) in enumerate(zip(runs, logs)):
            for key, dash in zip(names, _DASHES * len(names)):
                color = _COLORS[i % len(_COLORS)]
                traces += _curve(f"{run.name} {key}", repetitions, key, color, dash)
        if traces:
            figures.append(figure(f"{quantity} by iteration", traces))
    return figures


def _curve(
    name: str, logs: Sequence[Log], key: str, color: str, dash: str
) -> Iterable[Figure]:
    values = values_of(logs, key)
    if not values:
        return
    x = sorted(values)
    line = {"color": color, "dash": dash}
    if len(logs) > 1:
        least, most = ([f(values[i]) for i in x] for f in (min, max))
        yield {
            "x": x + x[::-1],
            "y": most + least[::-1],
            "mode": "lines",
            "fill": "toself",
            "fillcolor": color,
            "opacity": 0.2,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
            "legendgroup": name,
        }
    means = [float(numpy.mean(values[i])) for i in x]
    yield {"x": x, "y": means, "name": name, "line": line, "legendgroup": name}


def values_of(logs: Sequence[Log], key: str) -> dict[int, list[float]]:
    """By iteration, the numbers of all repetitions."""
    values: dict[int, list[float]] = {}
    for log in logs:
        for entry in log:
            if isinstance(entry.get(key), (int, float)):
                values.setdefault(entry["iteration"], []).append(entry[key])
    return values


def histograms(runs: Sequence[Run]) -> dict[str, Figure]:
    """By the name of a parameter, a figure with the numbers of all runs."""
    traces: dict[str, list[Figure]] = {}
    for i, run in enumerate(runs):
        for name, (x, y) in run.histograms.items():
            bars = {"type": "bar", "x": x, "y": y, "name": run.name, "opacity": 0.6}
            bars["marker"] = {"color": _COLORS[i % len(_COLORS)]}
            traces.setdefault(name, []).append(bars)
    return {name: figure(name, found) for name, found in traces.items()}


def timelines(run: Run) -> list[Figure]:
    """A figure for each trace: a bar for each operation, a row for each lane."""
    return [timeline(f"{run.place(path)}, ms", e) for path, e in run.traces]


def timeline(title: str, events: Sequence[dict[str, Any]]) -> Figure:
    """The longest complete events of a trace, in milliseconds from the first."""
    lanes = {
        (e["pid"], e.get("tid", 0) if e["name"] == "thread_name" else None): (
            e["args"]["name"]
        )
        for e in events
        if e["ph"] == "M" and e["name"] in ("process_name", "thread_name")
    }
    complete = [e for e in events if e["ph"] == "X"]
    complete = sorted(complete, key=lambda e: -e["dur"])[:_MOST_EVENTS]
    begin = min((e["ts"] for e in complete), default=0)

    def lane(event: dict[str, Any]) -> str:
        pid, tid = event["pid"], event.get("tid", 0)
        names = lanes.get((pid, None), str(pid)), lanes.get((pid, tid), str(tid))
        return " ".join(map(str, names))

    bars: dict[str, list[dict[str, Any]]] = {}
    for event in complete:
        bars.setdefault(event["name"], []).append(event)
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "base": [(e["ts"] - begin) / 1e3 for e in found],
            "x": [e["dur"] / 1e3 for e in found],
            "y": [lane(e) for e in found],
            "hovertemplate": f"{name}: %{{x:.3f}} ms<extra></extra>",
        }
        for name, found in bars.items()
    ]
    drawn = figure(title, traces)
    drawn["layout"] |= {"barmode": "overlay"}
    drawn["layout"]["yaxis"] |= {"type": "category", "autorange": "reversed"}
    return drawn


def figure(title: str, traces: list[Figure]) -> Figure:
    """A figure with a legend below, for narrow and wide screens."""
    layout = {
        "title": {"text": title, "font": {"size": 15}},
        "barmode": "overlay",
        "margin": {"l": 50, "r": 10, "t": 40, "b": 40},
        "legend": {"orientation": "h", "font": {"size": 11}},
        "xaxis": {"automargin": True},
        "yaxis": {"automargin": True},
    }
    return {"data": traces, "layout": layout}
