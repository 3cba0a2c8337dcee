"""Predict published runs of up to thousands of GPUs, and print both.

python scale.py                    # a table of all series
python scale.py --section 4        # of one section
python scale.py --write scale.md   # for docs/parallel/scale.md
python scale.py --held-out         # of points with which nothing was decided

What is known stands in published.json: machines, jobs, what was measured, and where
that was published. The rate of a device is fitted to the first point of a series,
one GPU most often, which is not counted.
"""

import argparse
import json
import math
import statistics
from pathlib import Path

from pipelined_networks import amoebanet, resnet101, unet

from renga import planning
from renga.communicators.simulated import Machine
from renga.planning import networks, scaling

PUBLISHED = Path(__file__).parent / "published.json"
RESNETS = {"50": (3, 4, 6, 3), "101": (3, 4, 23, 3), "152": (3, 8, 36, 3)}
BERTS = {"base": (12, 768, 128, 30522, 12), "large": (24, 1024, 128, 30522, 16)}
PIPELINED = {each.__name__: each for each in (amoebanet, resnet101, unet)}


def layers_of(name):
    """The layers of a model by its name."""
    kind, *sizes = name.split()
    if kind == "gpt":
        numbers = [int(own) for own in sizes if own.isdigit()]
        blocks, width, heads, length, words = [
            *numbers,
            *(2048, 51200)[len(numbers) - 3 :],
        ]
        attention = {"again", "fused"}.intersection(sizes) or {"stored"}
        (attention,) = attention
        return scaling.transformer(
            blocks,
            width,
            length,
            words,
            heads,
            has_sharded_norms=attention != "stored",
            attention=attention,
            loss_itemsize=2 if "half" in sizes else 4,
        )
    if kind.startswith("bert"):
        _, size, *is_32 = kind.split("-")
        blocks, width, length, words, heads = BERTS[size]
        length = int(sizes[0]) if sizes else length
        itemsize = 4 if is_32 else 2
        return scaling.transformer(blocks, width, length, words, heads, itemsize)
    if sizes == ["modules"]:
        return PIPELINED[kind]()
    if kind.startswith("res"):
        kind, *is_16 = kind.split("-")
        graph = networks.resnet(1, RESNETS[kind.lstrip("resnxt")])
        layers = scaling.layers_of(graph, 2 if is_16 else 4)
        # ResNeXt's gradients are as large, in the same order.
        ratio = {"resnext50": 25.0 / 25.5, "resnext101": 88.8 / 44.5}.get(kind, 1.0)
        layers = [
            layer._replace(parameters=round(ratio * layer.parameters))
            for layer in layers
        ]
        return layers
    make = {"vgg16": networks.vgg16, "inception-v3": networks.inception_v3}
    return scaling.layers_of(make.get(kind, networks.alexnet)(1))


def job_of(series, fields):
    """A point's job, and its ranks."""
    own = {**series.get("job", {}), **fields}
    own["layers"] = layers_of(own.pop("model", series["model"]))
    own.setdefault("batch", series.get("per_rank", 1) * own.get("data", 1))
    stages, layers = own.get("stages", 1), len(own["layers"])
    if series["model"].startswith("gpt") and stages > 1:
        # Both programs give each stage as many blocks.
        own["cuts"] = [(layers - 2) // stages] * stages
        own["cuts"][0] += 1
        own["cuts"][-1] += 1
    return scaling.Job(**own)


def value_of(series, fields, seconds):
    """Seconds of a step in the unit of a series."""
    job = job_of(series, fields)
    if series["unit"] == "samples/s":
        return job.batch / seconds
    if series["unit"] == "TFLOP/s":
        flops = sum(
            own.flops * (3 + job.recomputes * own.recomputed) for own in job.layers
        )
        return job.batch * flops / seconds / job.ranks / 1e12
    return seconds


def cluster_of(content, name, ranks):
    """So many ranks of a machine."""
    own = content["machines"][name]
    return planning.Cluster(
        ranks,
        Machine(**own["machine"]),
        device=planning.Device(
            **own["device"], contention=content["notes"]["contention"]
        ),
        stragglers=content["notes"]["stragglers"],
    )


def compare(series, content):
    """Yields (fields, published, predicted, step) of each point of a series."""
    fields, value = series["base"]
    job = job_of(series, fields)
    cluster = cluster_of(content, series["machine"], job.ranks)
    if series["unit"] in ("samples/s", "TFLOP/s"):
        value = value_of(series, fields, 1.0) / value
    cluster = scaling.fitted(job, cluster, value)
    for fields, published in series["points"]:
        job = job_of(series, fields)
        step = scaling.predict(job, cluster.with_ranks(job.ranks))
        yield fields, published, value_of(series, fields, step.seconds), step


def describe(fields):
    """The ranks along each way, and the micro-batches."""
    names = {"data": "d", "tensor": "t", "stages": "p", "micro_batches": "m"}
    parts = [f"{names[key]} {fields[key]}" for key in names if fields.get(key, 1) > 1]
    return ", ".join(parts) or "1"


def error_of(published, predicted, unit):
    """Of the throughput: how much faster the prediction is."""
    ratio = predicted / published
    return (1 / ratio if unit == "s" else ratio) - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--section", help="of published.json")
    parser.add_argument("--held-out", action="store_true", help="other points")
    parser.add_argument("--write", type=Path, help="a table of all points")
    options = parser.parse_args()
    content = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    errors, lines = [], []
    for series in content["held out" if options.held_out else "series"]:
        if options.section not in (None, series["section"]):
            continue
        found = list(compare(series, content))
        own = [error_of(p, q, series["unit"]) for _, p, q, _ in found]
        errors += own
        within = sum(abs(error) <= 0.1 for error in own)
        mean = statistics.mean(map(abs, own))
        name = series["name"]
        print(f"{series['section']:>3} {name:45} {within}/{len(own)}, {mean:.0%}")
        points = []
        for (fields, published, predicted, step), error in zip(found, own):
            row = (
                describe(fields),
                f"{published:g}",
                f"{predicted:.4g}",
                f"{error:+.0%}",
            )
            print("     {:28}{:>10}{:>10}{:>7}  {}".format(*row, step.limit))
            points.append("{}: {} / {} ({})".format(*row))
        cause = series.get("cause", "") if within < len(own) else ""
        heading = f"{series['section']}. {name} ({series['mark']}, {series['unit']})"
        lines.append(f"| {heading} | {'; '.join(points)} | {cause} |")
    within = sum(abs(error) <= 0.1 for error in errors)
    print(
        f"{within} of {len(errors)} points ({within / len(errors):.0%}) within 10 %, "
        f"mean error {statistics.mean(map(abs, errors)):.1%}, "
        f"geometric mean {math.exp(statistics.mean(math.log1p(e) for e in errors)):.3f}"
    )
    if options.write:
        options.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
