# ruff: noqa: E501
"""Links with empty batches and batches of two, as ``edge_cases.py`` for functions.

``run`` calls a link, ``steps`` calls it once for each input; both return the
outputs and then the link's persistent values. Parameters get gradients, too.
``python -m tests.links.cases.edge_links`` with a Chainer that works writes
``edge_links.json``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy

from tests.python.functions.cases import edge_cases

CALLS = """
run(L.BatchNormalization(3), s(N, 3))
run(L.BatchNormalization(3), s(N, 3, 4, 4))
run(L.BatchRenormalization(3, rmax=2., dmax=1.), s(N, 3))
run(L.Bias(1, (3,)), s(N, 3))
run(L.Bilinear(3, 4, 2), s(N, 3), s(N, 4))
run(L.BinaryHierarchicalSoftmax(3, ((0, 1), (2, 3))), s(N, 3), i(4, N))
run(L.BlackOut(3, [1, 2, 3], 2), s(N, 3), i(3, N))
run(L.CRF1d(3), [s(N, 3), s(N, 3)], [i(3, N), i(3, N)])
run(L.ChildSumTreeLSTM(3, 2), s(N, 2), s(N, 2), s(N, 2), s(N, 2), s(N, 3))
run(L.ChildSumTreeLSTM(3, 2), s(N, 3))
run(L.Classifier(L.Linear(3, 4)), s(N, 3), i(4, N))
run(L.Convolution1D(3, 2, 3), s(N, 3, 5))
run(L.Convolution2D(3, 2, 3), s(N, 3, 5, 5))
run(L.Convolution2D(None, 2, 3), s(N, 3, 5, 5))
run(L.Convolution3D(3, 2, 3), s(N, 3, 5, 5, 5))
run(L.ConvolutionND(2, 4, 2, 3, groups=2), s(N, 4, 5, 5))
run(L.Deconvolution1D(3, 2, 3), s(N, 3, 3))
run(L.Deconvolution2D(3, 2, 3), s(N, 3, 3, 3))
run(L.Deconvolution3D(3, 2, 3), s(N, 3, 2, 2, 2))
run(L.DeconvolutionND(2, 4, 2, 3, groups=2), s(N, 4, 3, 3))
run(L.DecorrelatedBatchNormalization(4, groups=2), s(8 * N, 4))
run(L.DeformableConvolution2D(3, 2, 3), s(N, 3, 5, 5))
run(L.DepthwiseConvolution2D(3, 2, 3), s(N, 3, 5, 5))
run(L.DilatedConvolution2D(3, 2, 3, dilate=2), s(N, 3, 6, 6))
run(L.EmbedID(3, 2), i(3, N))
steps(L.GRU(3, 2), s(N, 3), s(N, 3))
run(L.GroupNormalization(2, 4), s(N, 4, 3))
run(L.Highway(3), s(N, 3))
run(L.Inception(3, 2, 3, 4, 2, 3, 2), s(N, 3, 5, 5))
run(L.InceptionBN(3, 2, 3, 4, 2, 3, 'max', 2), s(N, 3, 5, 5))
run(L.InceptionBN(3, 0, 3, 4, 2, 3, 'avg', stride=2), s(N, 3, 5, 5))
steps(L.LSTM(3, 2), s(N, 3), s(N, 3))
steps(L.LSTM(2), s(2, 3), s(N, 3))
run(L.LayerNormalization(3), s(N, 3))
run(L.LayerNormalization(), s(N, 3))
run(L.Linear(3, 2), s(N, 3))
run(L.Linear(None, 2), s(N, 3))
run(L.Linear(12, 2), s(N, 3, 4))
run(L.LocalConvolution2D(3, 2, 5, 3), s(N, 3, 5, 5))
run(L.MLPConvolution2D(3, (4, 5, 2), 3), s(N, 3, 5, 5))
run(L.Maxout(3, 2, 4), s(N, 3))
run(L.NStepBiGRU(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])
run(L.NStepBiLSTM(2, 3, 2, 0.), None, None, [s(N, 3), s(2, 3)])
run(L.NStepBiRNNReLU(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])
run(L.NStepBiRNNTanh(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])
run(L.NStepGRU(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])
run(L.NStepLSTM(2, 3, 2, 0.), None, None, [s(N, 3), s(2, 3)])
run(L.NStepLSTM(2, 3, 2, 0.), None, None, [s(N, 3), s(N, 3)])
run(L.NStepRNNReLU(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])
run(L.NStepRNNTanh(2, 3, 2, 0.), None, [s(N, 3), s(2, 3)])
run(L.NaryTreeLSTM(3, 2, 2), s(N, 2), s(N, 2), s(N, 2), s(N, 2), s(N, 3))
run(L.NegativeSampling(3, [2, 1, 3, 4], 2), s(N, 3), i(4, N))
run(L.PReLU((3,)), s(N, 3))
run(L.Parameter(numpy.ones((3,), DTYPE)))
run(L.Scale(1, (3,), bias_term=True), s(N, 3))
run(L.SimplifiedDropconnect(3, 2), s(N, 3))
steps(L.StatefulGRU(3, 2), s(N, 3), s(N, 3))
steps(L.StatefulMGU(3, 2), s(N, 3), s(N, 3))
steps(L.StatefulPeepholeLSTM(3, 2), s(N, 3), s(N, 3))
steps(L.StatefulZoneoutLSTM(3, 2), s(N, 3), s(N, 3))
run(L.StatelessGRU(3, 2), s(N, 2), s(N, 3))
run(L.StatelessLSTM(3, 2), s(N, 2), s(N, 2), s(N, 3))
run(L.StatelessLSTM(3, 2), None, None, s(N, 3))
run(L.StatelessMGU(3, 2), s(N, 2), s(N, 3))
run(L.Swish((3,)), s(N, 3))
""".strip().split("\n")


class Inputs(edge_cases.Inputs):
    """The names in the calls."""

    def __init__(self, library: Any, n: int, dtype: str, *layout: Any) -> None:
        super().__init__(library, n, dtype, *layout)
        self.names.update(L=library.links, run=self.run, steps=self.steps)

    def run(self, link: Any, *xs: Any) -> list[Any]:
        return [link(*xs), *self.kept(link)]

    def steps(self, link: Any, *xs: Any) -> list[Any]:
        return [link(x) for x in xs] + self.kept(link)

    def kept(self, link: Any) -> list[Any]:
        self.variables += [p for _, p in sorted(link.namedparams())]
        serializer = self.library.serializers.DictionarySerializer()
        link.serialize(serializer)
        names = {path.strip("/") for path, _ in link.namedparams()}
        others = {k: v for k, v in serializer.target.items() if k not in names}
        return [numpy.asarray(v) for _, v in sorted(others.items())]


if __name__ == "__main__":
    file = Path(__file__).with_name("edge_links.json")
    edge_cases.write(file, CALLS, Inputs)
