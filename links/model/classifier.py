"""Classifier: a predictor together with its loss and accuracy."""

from __future__ import annotations

from typing import Any, Callable

from renga.core import reporter
from renga.core.link import Chain, Link
from renga.core.types import ArrayLike
from renga.core.variable import Variable
from renga.functions import accuracy, softmax_cross_entropy


class Classifier(Chain):
    """Computes the loss and the accuracy of a predictor, and reports both.

    ``label_key`` is the position or the keyword of the label among the arguments;
    the others go to the predictor. After a call ``y``, ``loss`` and ``accuracy``
    hold the results. Without ``compute_accuracy`` only the loss is computed.
    """

    compute_accuracy = True
    predictor: Link

    def __init__(
        self,
        predictor: Link,
        lossfun: Callable[..., object] = softmax_cross_entropy,
        accfun: Callable[..., object] = accuracy,
        label_key: int | str = -1,
    ) -> None:
        if not isinstance(label_key, (int, str)):
            raise TypeError(
                f"Classifier: expected an int or a str as label_key, got {label_key!r}"
            )
        super().__init__()
        self.lossfun = lossfun
        self.accfun = accfun
        self.y: Any = None
        self.loss: Any = None
        self.accuracy: Any = None
        self.label_key = label_key
        with self.init_scope():
            self.predictor = predictor

    def forward(self, *args: ArrayLike, **kwargs: object) -> Variable:
        """The loss; ValueError if no argument matches ``label_key``."""
        args, kwargs, t = self._take_label(args, kwargs)
        # Frees the graph of the previous call before the new one is built.
        self.y = self.loss = self.accuracy = None
        self.y = self.predictor(*args, **kwargs)
        self.loss = self.lossfun(self.y, t)
        reporter.report({"loss": self.loss}, self)
        if self.compute_accuracy:
            self.accuracy = self.accfun(self.y, t)
            reporter.report({"accuracy": self.accuracy}, self)
        return self.loss

    def _take_label(self, args: tuple, kwargs: dict) -> tuple[tuple, dict, Any]:
        key = self.label_key
        if isinstance(key, str):
            if key not in kwargs:
                raise ValueError(f'Label key "{key}" is not found')
            rest = {name: x for name, x in kwargs.items() if name != key}
            return args, rest, kwargs[key]
        if not -len(args) <= key < len(args):
            raise ValueError(f"Label key {key} is out of bounds")
        position = key % len(args)
        return args[:position] + args[position + 1 :], kwargs, args[position]
