"""Pictures of pipelines: schedules, traces, and curves of training.

python pictures.py digits.json text.json curves.svg
python pictures.py schedules.svg
"""

import json
import sys

import numpy
from matplotlib.figure import Figure

from renga.parallel.pipeline.schedule import SCHEDULES, Stream, flush_schedule
from renga.pipeline.timeline import timeline

STYLES = {
    "flush": ("black", "-"),
    "stale": ("#ee6677", "--"),
    "stash": ("#ccbb44", "-."),
    "spectrain": ("#4477aa", "-"),
    "pipeoptim": ("#228833", ":"),
}
COLOURS = {
    "forward": "#4477aa",
    "backward": "#228833",
    "weights": "#88bb77",
    "update": "#333333",
}
PASSES = {name: COLOURS[name] for name in ("forward", "backward", "weights")}
LATER_COLOURS = {"forward": "#dd9944", "backward": "#777777", "weights": "#aaaaaa"}
NAMES = {"F": "forward", "B": "backward", "W": "weights", "U": "update"}


def draw_curves(axes, curves, metric):
    """The loss in training and the metric on test data by epoch, means over seeds."""
    for ax, name in zip(axes, ("loss", metric)):
        for kind, found in curves.items():
            values = numpy.mean(found[name], 0)
            color, style = STYLES[kind]
            epochs = range(1, len(values) + 1)
            ax.plot(epochs, values, style, color=color, label=kind, linewidth=2)
        ax.set_xlabel("epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylabel("loss in training")
    axes[1].set_ylabel(f"{metric} on test data")
    if metric == "accuracy":
        axes[0].set_yscale("log")
    legend_beside(axes[1])


def legend_beside(ax, **options):
    """Names what is drawn at the right of the axes, where the names hide nothing."""
    place = {"loc": "center left", "bbox_to_anchor": (1, 0.5), "frameon": False}
    ax.legend(**place, **options)


def draw_schedule(ax, kind, ranks=4, micro_batches=8):
    """Which rank computes which micro-batch, if all kinds of passes take as long.

    Of ``interleaved`` each rank has two stages, of half the time.
    """
    stages = 2 * ranks if kind == "interleaved" else ranks
    if kind == "pipedream":
        streams = [Stream(rank, ranks, 1) for rank in range(ranks)]
        actions = [
            [a for _ in range(2 * micro_batches) for a in stream.next_batch()]
            for stream in streams
        ]
    else:
        actions = flush_schedule(kind, ranks, micro_batches, stages // ranks)

    def seconds_of(action):
        return 0.0 if action.kind == "U" else ranks / stages

    for each in timeline(actions, stages, seconds_of):
        if each.action.kind != "U":
            number, name = each.action.micro_batch, NAMES[each.action.kind]
            colours = COLOURS if each.action.stage < ranks else LATER_COLOURS
            draw_pass(ax, each.rank, name, each[2:], number, colours)
    ax.set_xlim(0, 3 * micro_batches + 2 * (ranks - 1))  # when those with a flush end
    finish_lanes(ax, [f"rank {rank}" for rank in range(ranks)])
    ax.set_title(kind, fontsize=10, loc="left")


def name_passes(ax, colours=COLOURS):
    """A legend of the passes, beside the axes."""
    bars = [ax.barh(0, 0, color=colour, label=name) for name, colour in colours.items()]
    legend_beside(ax, handles=bars)


def draw_trace(ax, events):
    """The passes of a trace of all ranks, and the messages between them."""
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    passes = [e for e in events if e.get("cat") == "pass"]
    begin = min(e["ts"] for e in passes)
    for e in passes:
        start = (e["ts"] - begin) / 1e3
        name, number = e["name"].split()
        draw_pass(ax, e["pid"], name, (start, start + e["dur"] / 1e3), number)
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    for sent in events:
        if sent["ph"] == "s":
            a, b = sent, ends[sent["id"]]
            arrow = {"arrowstyle": "-|>", "color": "#555555", "shrinkA": 0}
            points = [((e["ts"] - begin) / 1e3, -e["pid"]) for e in (b, a)]
            ax.annotate("", *points, arrowprops=arrow)
    finish_lanes(ax, [names[pid] for pid in sorted(names)])
    ax.set_xlabel("milliseconds")
    name_passes(ax)


def draw_pass(ax, lane, name, interval, number, colours=COLOURS):
    start, end = interval
    style = {"color": colours[name], "edgecolor": "white", "linewidth": 0.5}
    ax.barh(-lane, end - start, 0.8, start, **style)
    if name in ("forward", "backward"):
        ax.text((start + end) / 2, -lane, number, **LABEL, clip_on=True)


LABEL = {"ha": "center", "va": "center", "color": "white", "fontsize": 8}


def finish_lanes(ax, names):
    ax.set_yticks([-lane for lane in range(len(names))], names)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(left=False)


def main():
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "renga"  # the same file every time
    *files, out = sys.argv[1:]
    figure = curves_of(*files) if files else all_schedules()
    figure.savefig(out, metadata={"Date": None})


def all_schedules():
    """A picture of each kind of schedule."""
    figure = Figure((9, 7.2), layout="constrained")
    axes = figure.subplots(len(SCHEDULES), 1)
    for ax, kind in zip(axes, SCHEDULES):
        draw_schedule(ax, kind)
        if kind == "interleaved":
            later = {f"{name}, later stage": c for name, c in LATER_COLOURS.items()}
            name_passes(ax, PASSES | later)
    axes[-1].set_xlabel("time, in forward passes of a micro-batch")
    return figure


def curves_of(digits, text):
    """The curves in two files, written by compare.py."""
    figure = Figure((9, 6.4), layout="constrained")
    above, below = figure.subfigures(2, 1)
    for part, name, path, metric in (
        (above, "VGG on digits", digits, "accuracy"),
        (below, "LSTM language model", text, "perplexity"),
    ):
        part.suptitle(name, fontsize=11)
        with open(path) as file:
            draw_curves(part.subplots(1, 2), json.load(file), metric)
    return figure


if __name__ == "__main__":
    main()
