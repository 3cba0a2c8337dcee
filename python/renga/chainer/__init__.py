"""Chainer's names for renga: unmodified Chainer scripts run.

``python -m renga.chainer script.py …`` runs a script for which ``chainer``,
``chainermn`` and ``chainerx`` are renga. Everything that is only for compatibility with
Chainer is in this package.
"""

from renga.chainer.finder import install

__all__ = ["install"]
