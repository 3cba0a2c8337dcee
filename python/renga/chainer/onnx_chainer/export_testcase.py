"""Test cases: a graph with its inputs and outputs."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy

from renga.chainer.onnx_chainer.export import export
from renga.chainer.onnx_chainer.onnx_helper import cleanse_param_name, write_tensor_pb
from renga.core.link import Link


def export_testcase(
    model: Link, args: object, out_dir: str, output_grad: bool = False, **kwargs: Any
) -> None:
    """Saves ``model.onnx`` and, in ``test_data_set_0``, its inputs and outputs.

    With ``output_grad`` the gradients of the parameters are saved, too, for gradients
    of 1 of the outputs. Keywords are those of ``export``.
    """
    folder = os.path.join(out_dir, "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(out_dir, "model.onnx")
    model.cleargrads()
    _, inputs, outputs = export(
        model, args, path, return_named_inout=True, no_testcase=True, **kwargs
    )
    for kind, values in (("input", inputs), ("output", outputs)):
        for i, (name, x) in enumerate(values.items()):
            write_tensor_pb(os.path.join(folder, f"{kind}_{i}.pb"), name, x.array)
    if not output_grad:
        return
    for y in outputs.values():
        y.grad = numpy.ones_like(y.array)
        y.backward(retain_grad=True)
    for i, (path, param) in enumerate(model.namedparams()):
        if param.grad is None:
            warnings.warn(f"export_testcase: {path} has no gradient", stacklevel=2)
            continue
        file = os.path.join(folder, f"gradient_{i}.pb")
        write_tensor_pb(file, cleanse_param_name(path), param.grad)
