"""Compare the weights that the stages of a pipeline may compute with.

    python compare.py --task digits --stages 8 --epoch 8 --seeds 3 --out result

Trains with each kind of weights for as many epochs, on virtual ranks in one process,
and writes the curves as numbers and as a picture.
"""

import argparse
import json
from pathlib import Path

import numpy
from matplotlib.figure import Figure
from pictures import draw_curves
from tasks import TASKS
from train_pipeline import KINDS, train_on_virtual_ranks


def compare(task, stages, epochs, seeds=1, kinds=tuple(KINDS)):
    """Curves by kind: the losses in training, and the metric on test data, by epoch.

    Shapes:
        loss, metric: (seeds, epochs)
    """
    curves = {}
    for kind in kinds:
        logs = [
            train_on_virtual_ranks(stages, task, kind, epochs, seed=seed)
            for seed in range(seeds)
        ]
        curves[kind] = {
            "loss": [[entry["main/loss"] for entry in log] for log in logs],
            task.metric: [
                [entry[f"validation/main/{task.metric}"] for entry in log]
                for log in logs
            ],
        }
    return curves


def table(curves, metric):
    """The last epoch's values, means over seeds, beside those of the first kind."""
    last = {
        kind: {name: numpy.mean(values, 0)[-1] for name, values in found.items()}
        for kind, found in curves.items()
    }
    reference = next(iter(last))
    lines = [f"{'weights':12}{'loss':>8}{metric:>12}  compared with {reference}"]
    for kind, values in last.items():
        value, first = values[metric], last[reference][metric]
        if metric == "accuracy":
            cells = f"{value:12.2%}{100 * (value - first):+10.2f} points"
        else:
            cells = f"{value:12.1f}{value / first - 1:+10.1%}"
        lines.append(f"{kind:12}{values['loss']:8.3f}{cells}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=TASKS, default="digits")
    parser.add_argument("--weights", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--stages", type=int, default=8)
    parser.add_argument("--epoch", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--size", type=int, help="images or words, also to test with")
    parser.add_argument("--out", default="result", help="folder for what is written")
    args = parser.parse_args()
    task = TASKS[args.task](args.size)
    curves = compare(task, args.stages, args.epoch, args.seeds, args.weights)
    print(table(curves, task.metric))
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{args.task}.json").write_text(json.dumps(curves, indent=1))
    figure = Figure((9, 3.4), layout="constrained")
    draw_curves(figure.subplots(1, 2), curves, task.metric)
    figure.savefig(out / f"{args.task}.png", dpi=120)


if __name__ == "__main__":
    main()
