"""Every link with empty batches and unusual arrays, as ``edge_links`` explains."""

import sys
from pathlib import Path

import chainer
import chainer.utils

sys.path.append(str(Path(__file__).parents[4]))
from tests.links.cases import edge_links  # noqa: E402
from tests.python.functions.cases import edge_cases  # noqa: E402

GENERATED = edge_cases.generated(chainer, edge_links.calls(), edge_links.Inputs)
