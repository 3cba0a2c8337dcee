"""Models as ONNX graphs."""

from renga.exporters.onnx.export import export
from renga.exporters.onnx.recording import OPSET

__all__ = ["OPSET", "export"]
