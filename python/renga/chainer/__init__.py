"""Chainer's names for renga: unmodified Chainer scripts run.

``python -m renga.chainer script.py …`` runs a script for which ``chainer``,
``chainermn`` and ``chainerx`` are renga. All that exists for Chainer's sake alone is in
this package.
"""

from renga.chainer.finder import install

__all__ = ["install"]
