"""``onnx_chainer``: models as ONNX graphs, by the exporter of renga."""

from renga.chainer.onnx_chainer.export import (
    MAXIMUM_OPSET_VERSION,
    MINIMUM_OPSET_VERSION,
    FunctionConverterParams,
    export,
)
from renga.chainer.onnx_chainer.export_testcase import export_testcase

__all__ = [
    "MAXIMUM_OPSET_VERSION",
    "MINIMUM_OPSET_VERSION",
    "FunctionConverterParams",
    "export",
    "export_testcase",
]
