"""Models for other libraries."""

from renga.exporters import onnx

__all__ = ["onnx"]
