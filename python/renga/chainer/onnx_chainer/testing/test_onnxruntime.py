"""Compares the outputs of ONNX Runtime with those of a saved test case."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

import numpy


def load_test_data(
    data_dir: str, input_names: Sequence[str], output_names: Sequence[str]
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Inputs and outputs by name; a file whose name is none of these has the next."""
    import onnx

    found = []
    for kind, names in (("input", list(input_names)), ("output", list(output_names))):
        values = {}
        for path in sorted(glob.glob(os.path.join(data_dir, f"{kind}_*.pb"))):
            tensor = onnx.load_tensor(path)
            name = tensor.name if tensor.name in names else names[0]
            names.remove(name)
            values[name] = onnx.numpy_helper.to_array(tensor)
        found.append(values)
    return found[0], found[1]


def check_model_expect(
    test_path: str,
    input_names: Sequence[str] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> None:
    """Runs ``model.onnx`` on the inputs of all test data sets of the folder.

    Raises:
        AssertionError: outputs differ, or inputs are not called ``input_names``.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(
        os.path.join(test_path, "model.onnx"), providers=["CPUExecutionProvider"]
    )
    inputs = [x.name for x in session.get_inputs()]
    outputs = [y.name for y in session.get_outputs()]
    if input_names is not None:
        numpy.testing.assert_array_equal(sorted(inputs), sorted(input_names))
    for folder in sorted(glob.glob(os.path.join(test_path, "test_data_set_*"))):
        given, expected = load_test_data(folder, inputs, outputs)
        found = session.run(list(expected), given)
        for y, result in zip(expected.values(), found):
            numpy.testing.assert_allclose(y, result, rtol=rtol, atol=atol)
