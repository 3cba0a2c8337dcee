"""Test cases in folders by their version of the operators."""

from __future__ import annotations

import os
from typing import Any

from renga.chainer.onnx_chainer.export_testcase import export_testcase
from renga.core.link import Link

TEST_OUT_DIR = "out"


def gen_test_data_set(
    model: Link, args: object, name: str, opset_version: int, **kwargs: Any
) -> str:
    """Saves a test case below ``out``, with a fixed seed; the path of its folder."""
    model.xp.random.seed(42)
    path = os.path.join(TEST_OUT_DIR, f"opset{opset_version}", name)
    export_testcase(model, args, path, opset_version=opset_version, **kwargs)
    return path
