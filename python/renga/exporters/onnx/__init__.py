"""Models as ONNX graphs."""

from renga.exporters.onnx.export import OPSET, export

__all__ = ["OPSET", "export"]
