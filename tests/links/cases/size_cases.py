# ruff: noqa: E501
"""Links, parameters and initializers with odd sizes.

One row for each call: the error's name, or dtypes and shapes of what it gives.
"""

CASES = r"""
L.Linear(0, 3) -> Linear
L.Linear(3, 0) -> Linear
L.Linear(-1, 3) -> ValueError
L.Linear(3, -1) -> ValueError
L.Linear(-3) -> ValueError
L.Linear(2**40, 2**40) -> MemoryError
L.Linear(2**62, 2) -> MemoryError
L.Linear(2**64, 2) -> MemoryError
L.Linear(10**6, 10**6) -> MemoryError
L.Linear(3.0, 2) -> TypeError
L.Linear('3', 2) -> TypeError
L.Linear(3, None) -> Linear
L.Linear(None, None) -> Linear
L.Linear(None, -3) -> ValueError
L.Linear(numpy.int64(3), 2) -> Linear
L.Linear(True, 2) -> Linear
L.Linear(3, 2**64) -> MemoryError
L.Linear(None, 2.5) -> TypeError
L.Convolution2D(3, 4, 0) -> ValueError
L.Convolution2D(3, 4, -1) -> ValueError
L.Convolution2D(3, 4, 2**40) -> MemoryError
L.Convolution2D(3, 4, 2**64) -> MemoryError
L.Convolution2D(3, 4, 2.5) -> TypeError
L.Convolution2D(3, 4, (3, 3, 3)) -> ValueError
L.Convolution2D(3, 4, (3,)) -> ValueError
L.Convolution2D(3, 4, '33') -> TypeError
L.Convolution2D(0, 4, 3) -> Convolution2D
L.Convolution2D(-3, 4, 3) -> ValueError
L.Convolution2D(3, -4, 3) -> ValueError
L.Convolution2D(3, 0, 3) -> Convolution2D
L.Convolution2D(2**40, 2**40, 3) -> MemoryError
L.Convolution2D(4, 4, 3, groups=0) -> ValueError
L.Convolution2D(4, 4, 3, groups=-1) -> ValueError
L.Convolution2D(4, 4, 3, groups=2**64) -> ValueError
L.Convolution2D(4, 4, 3, groups=1.5) -> Convolution2D
L.Convolution2D(4, 4, 3, groups=3) -> ValueError
L.Convolution2D(4, 4, 3, stride=0) -> Convolution2D
L.Convolution2D(4, 4, 3, pad=-1) -> Convolution2D
L.Convolution2D(4, 4, 3, stride=0)(f(1, 4, 5, 5)) -> ValueError
L.Convolution2D(None, 4, 0)(f(1, 4, 5, 5)) -> ValueError
L.Convolution2D(4, 4, 3)(d(1, 4, 5, 5)) -> InvalidType
L.Convolution2D(4, 4) -> Convolution2D
L.Deconvolution2D(3, 4, 0) -> ValueError
L.Deconvolution2D(3, 4, -1) -> ValueError
L.Deconvolution2D(3, 4, 2**40) -> MemoryError
L.Deconvolution2D(4, 4, 3, groups=0) -> ValueError
L.Deconvolution2D(4, 4, 3)(d(1, 4, 5, 5)) -> InvalidType
L.Deconvolution2D(4, 4, 3, outsize=(-1, -1))(f(1, 4, 5, 5)) -> InvalidType
L.ConvolutionND(0, 3, 4, 3) -> ValueError
L.ConvolutionND(-1, 3, 4, 3) -> ValueError
L.ConvolutionND(2**40, 3, 4, 3) -> ValueError
L.ConvolutionND(30, 3, 4, 3) -> ValueError
L.ConvolutionND(2.0, 3, 4, 3) -> TypeError
L.ConvolutionND(2, 3, 4, 0) -> ValueError
L.ConvolutionND(2, 3, 4, (3, 3, 3)) -> AssertionError
L.Convolution1D(3, 4, 0) -> ValueError
L.Convolution3D(3, 4, -1) -> ValueError
L.DeconvolutionND(2, 3, 4, 0) -> ValueError
L.DeconvolutionND(2, 3, 4, -2) -> ValueError
L.DepthwiseConvolution2D(3, 0, 3) -> DepthwiseConvolution2D
L.DepthwiseConvolution2D(3, -2, 3) -> ValueError
L.DepthwiseConvolution2D(3, 2, 0) -> ValueError
L.DilatedConvolution2D(3, 4, 0) -> ValueError
L.DilatedConvolution2D(3, 4, 3, dilate=0)(f(1, 3, 9, 9)) -> ValueError
L.LocalConvolution2D(3, 4, 5, 0) -> ValueError
L.LocalConvolution2D(3, 4, 5, 9) -> ValueError
L.LocalConvolution2D(3, 4, -5, 3) -> ValueError
L.LocalConvolution2D(3, 4, 5, 3, 0) -> ValueError
L.LocalConvolution2D(3, 4, 2**40, 3) -> MemoryError
L.DeformableConvolution2D(3, 4, 0) -> ValueError
L.DeformableConvolution2D(3, 4, -1) -> ValueError
L.EmbedID(0, 3) -> EmbedID
L.EmbedID(3, 0) -> EmbedID
L.EmbedID(-3, 3) -> ValueError
L.EmbedID(3, -3) -> ValueError
L.EmbedID(2**40, 2**40) -> MemoryError
L.EmbedID(2**64, 3) -> MemoryError
L.EmbedID(3.0, 3) -> TypeError
L.EmbedID(None, 3) -> TypeError
L.BatchNormalization(0) -> BatchNormalization
L.BatchNormalization(-3) -> ValueError
L.BatchNormalization(2**64) -> MemoryError
L.BatchNormalization(2**62) -> MemoryError
L.BatchNormalization((2**32, 2**32)) -> MemoryError
L.BatchNormalization(3.0) -> TypeError
L.BatchNormalization(axis=(0, 0)) -> BatchNormalization
L.LayerNormalization(-3) -> ValueError
L.LayerNormalization(2**62) -> MemoryError
L.GroupNormalization(-2, 4)(f(2, 4)) -> ValueError
L.GroupNormalization(2, -4) -> ValueError
L.GroupNormalization(3, 4) -> GroupNormalization
L.GroupNormalization(2.0, 4)(f(2, 4)) -> TypeError
L.GroupNormalization(0, 4)(f(2, 4)) -> ValueError
L.DecorrelatedBatchNormalization(4, groups=0) -> ValueError
L.DecorrelatedBatchNormalization(0, groups=2) -> DecorrelatedBatchNormalization
L.DecorrelatedBatchNormalization(4, groups=3) -> ValueError
L.DecorrelatedBatchNormalization(-4, groups=2) -> ValueError
L.DecorrelatedBatchNormalization(4, groups=2**64) -> ValueError
L.Maxout(3, 2, 0) -> ValueError
L.Maxout(3, 2, -1) -> ValueError
L.Maxout(3, -2, 2) -> ValueError
L.Maxout(3, 2, 2**40) -> MemoryError
L.Maxout(3, 2, 2**64) -> MemoryError
L.Bilinear(0, 3, 4) -> Bilinear
L.Bilinear(-2, 3, 4) -> ValueError
L.Bilinear(2**40, 3, 2**40) -> MemoryError
L.Bias(0, (-3,)) -> ValueError
L.Bias(0, (2**62,)) -> MemoryError
L.Scale(1, (-3,)) -> ValueError
L.Scale(-9, (3,))(f(2, 3)) -> InvalidType
L.PReLU((-3,)) -> ValueError
L.PReLU((2**62,)) -> MemoryError
L.Highway(-3) -> ValueError
L.LSTM(3, -2) -> ValueError
L.LSTM(-3, 2) -> ValueError
L.LSTM(3, 2**62) -> MemoryError
L.LSTM(0, 2) -> LSTM
L.GRU(3, -2) -> ValueError
L.StatelessLSTM(3, -2) -> ValueError
L.NStepLSTM(0, 3, 4, 0.) -> ValueError
L.NStepLSTM(-1, 3, 4, 0.) -> ValueError
L.NStepLSTM(1, -3, 4, 0.) -> ValueError
L.NStepLSTM(1, 3, -4, 0.) -> ValueError
L.NStepLSTM(1.5, 3, 4, 0.) -> TypeError
L.NStepLSTM(1, 3, 4, 2.) -> NStepLSTM
L.NStepLSTM(1, 3, 2**62, 0.) -> MemoryError
L.NStepGRU(0, 3, 4, 0.) -> ValueError
L.ChildSumTreeLSTM(3, -4) -> ValueError
L.NaryTreeLSTM(3, 4, 0) -> AssertionError
L.NaryTreeLSTM(3, 4, -2) -> AssertionError
L.Inception(-3, 1, 1, 1, 1, 1, 1) -> ValueError
L.MLPConvolution2D(3, (4, -4), 3) -> ValueError
L.MLPConvolution2D(3, (), 3) -> AssertionError
L.NegativeSampling(-3, [1, 2, 3], 2) -> ValueError
L.NegativeSampling(3, [1, 2, 3], -2) -> ValueError
L.NegativeSampling(3, [1, 2, 3], 0) -> ValueError
L.BlackOut(-3, [1, 2, 3], 2) -> ValueError
L.BlackOut(3, [1, 2, 3], -2) -> ValueError
L.SimplifiedDropconnect(-3, 4) -> ValueError
L.SimplifiedDropconnect(3, 4, ratio=2) -> SimplifiedDropconnect
P(0, (-3,)) -> ValueError
P(0, (2**62,)) -> MemoryError
P(0, (2**64,)) -> MemoryError
P(0, (2**40, 2**40)) -> MemoryError
P(0, -3) -> ValueError
P(0, 3.0) -> TypeError
P(0, '3') -> TypeError
P(0, (3.0,)) -> TypeError
P(0, ((3,),)) -> TypeError
P(0, (1,) * 17) -> ValueError
P(0, (1,) * 70) -> ValueError
P(0, 2**40) -> MemoryError
I.generate_array(I.Zero(), (-3,), numpy) -> ValueError
I.generate_array(I.Zero(), (2**62,), numpy) -> MemoryError
I.generate_array(I.Zero(), (2**64,), numpy) -> MemoryError
I.generate_array(I.Zero(), (2**40,), numpy) -> MemoryError
I.generate_array(I.Zero(), 'ab', numpy) -> TypeError
I.generate_array(I.Normal(), (0, 3), numpy) -> float32 (0, 3)
I.generate_array(I.LeCunNormal(), (0, 3), numpy) -> float32 (0, 3)
I.generate_array(I.LeCunNormal(), (3, 0), numpy) -> float32 (3, 0)
I.generate_array(I.LeCunUniform(), (3, 0), numpy) -> float32 (3, 0)
I.generate_array(I.GlorotNormal(), (0, 0), numpy) -> float32 (0, 0)
I.generate_array(I.GlorotUniform(), (0, 0), numpy) -> float32 (0, 0)
I.generate_array(I.HeNormal(), (3, 0), numpy) -> float32 (3, 0)
I.generate_array(I.HeUniform(), (3, 0), numpy) -> float32 (3, 0)
I.generate_array(I.Orthogonal(), (3, 0), numpy) -> ValueError
I.generate_array(I.Identity(), (0, 0), numpy) -> float32 (0, 0)
"""
