"""``onnx_chainer``: models as ONNX graphs, by the exporter of renga."""

from renga.chainer.onnx_chainer.export import (
    MAXIMUM_OPSET_VERSION as MAXIMUM_OPSET_VERSION,
    MINIMUM_OPSET_VERSION as MINIMUM_OPSET_VERSION,
    FunctionConverterParams as FunctionConverterParams,
    convert_parameter as convert_parameter,
    export as export,
)
from renga.chainer.onnx_chainer.export_testcase import (
    export_testcase as export_testcase,
)
