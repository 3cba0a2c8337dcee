"""Writes a page about runs, which needs no network.

The page has curves of all runs, pictures, tables, histograms of parameters and
timelines. ``--out`` is the file. A folder without a log, but with folders that have
one, is one run that was repeated.
"""

from __future__ import annotations

import argparse

from renga.training import run_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``renga report``."""
    parser.add_argument("folders", nargs="+", help="that trainers wrote to")
    parser.add_argument("-o", "--out", default="report.html", help="file of the page")


def main(chosen: argparse.Namespace) -> int:
    """Writes the page; returns 0."""
    run_report.write(chosen.folders, chosen.out)
    print(f"wrote {chosen.out}")
    return 0
