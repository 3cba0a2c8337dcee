"""Updaters: how one iteration trains a model."""

from renga.training.updaters.standard_updater import StandardUpdater

__all__ = ["StandardUpdater"]
