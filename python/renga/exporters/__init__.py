"""Export of models to other formats."""

from renga.exporters import onnx

__all__ = ["onnx"]
