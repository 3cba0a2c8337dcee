"""A page about runs: curves, pictures, tables, parameters and timelines."""

from renga.training.run_report.page import write

__all__ = ["write"]
