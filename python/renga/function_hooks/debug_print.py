"""Prints the arrays of functions."""

from __future__ import annotations

import sys
from typing import IO

import numpy

from renga.core.function_hook import Arrays, FunctionHook
from renga.core.types import CalledFunction
from renga.core.variable import Variable


def label_of(function: CalledFunction) -> str:
    """The name that is printed."""
    return str(function.label)


class PrintHook(FunctionHook):
    """Prints each function's name, its inputs, and its gradients in the backward pass.

    ``sep``, ``end``, ``file`` and ``flush`` are those of ``print``.
    """

    name = "PrintHook"

    def __init__(
        self,
        sep: str | None = None,
        end: str = "\n",
        file: IO[str] = sys.stdout,
        flush: bool = True,
    ) -> None:
        self.sep = sep
        self.end = end
        self.file = file
        self.flush = flush

    def forward_preprocess(self, function: CalledFunction, in_data: Arrays) -> None:
        self._print_inputs(function, in_data)

    def backward_preprocess(
        self, function: CalledFunction, in_data: Arrays, out_grad: Arrays
    ) -> None:
        self._print_inputs(function, in_data)
        self._print("output gradient")
        for gy in out_grad:
            y = Variable()
            if gy is not None:
                y = Variable(numpy.zeros_like(gy))
                y.grad = gy
            self._print(y.debug_print())

    def _print_inputs(self, function: CalledFunction, in_data: Arrays) -> None:
        self._print(f"function\t{label_of(function)}")
        self._print("input data")
        for x in in_data:
            self._print("(removed)" if x is None else Variable(x).debug_print())

    def _print(self, text: str) -> None:
        print(text, sep=self.sep, end=self.end, file=self.file, flush=self.flush)
