"""Predicts how training scales on a described machine, and what limits it.

``cluster.json`` is what ``renga doctor --write cluster.json`` measures, or written by
hand: see the documentation of planning.
"""

from __future__ import annotations

import argparse
import sys

from renga import planning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("--model", choices=list(planning.MODELS), required=True)
    parser.add_argument("--batch", type=int, default=32, help="samples for each rank")
    parser.add_argument("--cluster", required=True, help="a file that describes it")
    parser.add_argument("--ranks", type=int, help="at most; those of the cluster")
    parser.add_argument("--epoch", type=int, default=1_281_167, help="its samples")
    parser.add_argument("--save", type=float, default=30, help="s of a checkpoint")
    parser.add_argument("--restart", type=float, default=60, help="s after a failure")
    parser.add_argument("--draw", metavar="FILE", help="a picture, SVG or PNG")


def main(chosen: argparse.Namespace) -> int:
    """Prints a table; returns 0 if there is one."""
    try:
        cluster = planning.Cluster.load(chosen.cluster)
        if chosen.ranks is not None:
            cluster = cluster.with_ranks(chosen.ranks)
        table = planning.scale(
            chosen.model,
            chosen.batch,
            cluster,
            epoch=chosen.epoch,
            save=chosen.save,
            restart=chosen.restart,
        )
        if chosen.draw:
            table.draw(chosen.draw)
    except (OSError, ValueError) as error:
        print(f"renga plan: {error}", file=sys.stderr)
        return 2
    print(table)
    return 0
