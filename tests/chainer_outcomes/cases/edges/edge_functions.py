"""Every function with empty batches and unusual arrays, as ``edge_cases`` explains."""

import sys
from pathlib import Path

import chainer
import chainer.utils

sys.path.append(str(Path(__file__).parents[3] / "python/functions/cases"))
import edge_cases  # noqa: E402

GENERATED = edge_cases.generated(chainer, edge_cases.calls(), edge_cases.Inputs)
