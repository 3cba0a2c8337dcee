"""Mixtures of pairs of examples."""

from __future__ import annotations

import numpy

from renga.core.types import Array
from renga.transforms.images import as_batch
from renga.utils.argument import check_count, check_number
from renga.utils.type_check import InvalidType


class Mixup:
    """Mixes each example of a batch with another one, and their labels alike.

    The batch becomes ``m x + (1 - m) x[order]`` for a random order and one m for the
    batch from the distribution Beta(alpha, alpha).
    ``F.softmax_cross_entropy`` takes the probabilities that are the new labels;
    ``L.Classifier`` then needs ``compute_accuracy = False``.

    Shapes:
        x: (N, …) float
        t: (N,) integers below ``n_classes``
        returns: arrays like x, and (N, n_classes) of the dtype of x

    Source: Zhang et al., mixup: beyond empirical risk minimization, 2018.
    """

    def __init__(self, n_classes: int, alpha: float = 0.2) -> None:
        check_count("Mixup: n_classes", n_classes)
        check_number("Mixup: alpha", alpha)
        if not 0 < alpha < numpy.inf:
            raise ValueError(f"Mixup: expected alpha > 0, got {alpha}")
        self.n_classes, self.alpha = n_classes, alpha

    def __call__(self, x: Array, t: Array) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The mixed examples and their probabilities.

        Raises:
            InvalidType: the examples are no floats or the labels no integers (N,).
            IndexError: a label is not from 0 to ``n_classes - 1``.
        """
        x, t = as_batch("Mixup", x), as_batch("Mixup", t)
        if x.dtype.kind != "f" or t.dtype.kind not in "iu" or t.shape != x.shape[:1]:
            raise InvalidType(
                f"Mixup: expected floats (N, ...) and integers (N,), got {x.dtype} "
                f"{x.shape} and {t.dtype} {t.shape}"
            )
        if t.size and not 0 <= t.min() <= t.max() < self.n_classes:
            raise IndexError(
                f"Mixup: expected labels from 0 to {self.n_classes - 1}, got "
                f"{t.min()} to {t.max()}"
            )
        m = x.dtype.type(numpy.random.beta(self.alpha, self.alpha))
        order = numpy.random.permutation(len(x))
        one_hot = numpy.eye(self.n_classes, dtype=x.dtype)[t]
        return _mixed(m, x, order), _mixed(m, one_hot, order)


def _mixed(m: float, x: numpy.ndarray, order: numpy.ndarray) -> numpy.ndarray:
    """One example after the other, which stays in the cache."""
    y = numpy.empty_like(x)
    own = numpy.empty_like(x[:1])
    for i, j in enumerate(order.tolist()):
        numpy.multiply(x[j], 1 - m, out=y[i : i + 1])
        y[i : i + 1] += numpy.multiply(x[i], m, out=own)
    return y
