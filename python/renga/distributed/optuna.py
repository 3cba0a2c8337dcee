"""Optuna's studies with objectives that all ranks compute together."""

from renga.parallel.optuna import Study, Trial, create_study

__all__ = ["Study", "Trial", "create_study"]
