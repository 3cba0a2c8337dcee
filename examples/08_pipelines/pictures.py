"""Pictures of pipelines: schedules, traces, and curves of training.

python pictures.py digits.json text.json curves.svg
"""

import json
import sys

import numpy

from renga.pipeline.schedule import Stream, flush_schedule
from renga.pipeline.timeline import timeline

STYLES = {
    "flush": ("black", "-"),
    "stale": ("#ee6677", "--"),
    "stash": ("#ccbb44", "-."),
    "spectrain": ("#4477aa", "-"),
    "pipeoptim": ("#228833", ":"),
}
COLOURS = {"forward": "#4477aa", "backward": "#228833", "update": "#ee6677"}
NAMES = {"F": "forward", "B": "backward", "U": "update"}


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
    axes[0].legend()


def draw_schedule(ax, kind, ranks=4, micro_batches=8):
    """Which rank computes which micro-batch; backward passes take twice as long."""
    if kind == "pipedream":
        streams = [Stream(rank, ranks, 1) for rank in range(ranks)]
        actions = [
            [a for _ in range(2 * micro_batches) for a in stream.next_batch()]
            for stream in streams
        ]
    else:
        actions = flush_schedule(kind, ranks, micro_batches)
    seconds = {"F": 1, "B": 2, "U": 0.0}
    for each in timeline(actions, ranks, lambda action: seconds[action.kind]):
        if each.action.kind != "U":
            number = each.action.micro_batch
            draw_pass(ax, each.rank, NAMES[each.action.kind], each[2:], number)
    ax.set_xlim(0, 3 * (micro_batches + ranks - 1))  # when those with a flush end
    finish_lanes(ax, [f"rank {rank}" for rank in range(ranks)])
    ax.set_title(kind, fontsize=10, loc="left")


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
    bars = [ax.barh(0, 0, color=colour, label=name) for name, colour in COLOURS.items()]
    ax.legend(handles=bars, ncols=len(bars), loc="lower right", bbox_to_anchor=(1, 1))


def draw_pass(ax, lane, name, interval, number):
    start, end = interval
    colour = COLOURS[name]
    ax.barh(
        -lane, end - start, 0.8, start, color=colour, edgecolor="white", linewidth=0.5
    )
    if name != "update":
        ax.text((start + end) / 2, -lane, number, **LABEL, clip_on=True)


LABEL = {"ha": "center", "va": "center", "color": "white", "fontsize": 8}


def finish_lanes(ax, names):
    ax.set_yticks([-lane for lane in range(len(names))], names)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(left=False)


def main():
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "renga"  # the same file every time
    digits, text = (json.load(open(path)) for path in sys.argv[1:3])
    figure = Figure((9, 6.4), layout="constrained")
    above, below = figure.subfigures(2, 1)
    for part, name, curves, metric in (
        (above, "VGG on digits", digits, "accuracy"),
        (below, "LSTM language model", text, "perplexity"),
    ):
        part.suptitle(name, fontsize=11)
        draw_curves(part.subplots(1, 2), curves, metric)
    figure.savefig(sys.argv[3], metadata={"Date": None})


if __name__ == "__main__":
    main()
