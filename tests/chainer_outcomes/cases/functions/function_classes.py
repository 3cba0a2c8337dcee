"""Classes of functions: outputs of ``apply``, gradients, labels and attributes."""

import importlib

import chainer
import chainer.functions as F
import numpy as np

# Module, call of the class, and inputs: s between -2 and 2, u between 0 and 1, i integers.
ROWS = """
activation.clipped_relu ClippedReLU(1.) | s(2, 3)
activation.crelu CReLU() | s(2, 3)
activation.elu ELU(2.) | s(2, 3)
activation.hard_sigmoid HardSigmoid() | s(2, 3)
activation.leaky_relu LeakyReLU(.3) | s(2, 3)
activation.log_softmax LogSoftmax() | s(2, 3)
activation.prelu PReLUFunction() | s(2, 3), s(3)
activation.relu ReLU() | s(2, 3)
activation.rrelu RReLU(r=np.full((2, 3), .25, 'f')) | s(2, 3)
activation.sigmoid Sigmoid() | s(2, 3)
activation.softmax Softmax() | s(2, 3)
activation.softmax Softmax(axis=0) | s(2, 3)
activation.softplus Softplus(2.) | s(2, 3)
activation.swish Swish() | s(2, 3), s(3)
activation.tanh Tanh() | s(2, 3)
array.broadcast Broadcast() | s(2, 3), s(3)
array.broadcast BroadcastTo((2, 3)) | s(1, 3)
array.cast Cast('d') | s(2, 3)
array.concat Concat(axis=0) | s(2, 3), s(1, 3)
array.depth2space Depth2Space(2) | s(1, 4, 1, 2)
array.diagonal Diagonal(0, 0, 1) | s(3, 3)
array.dstack Dstack() | s(2, 3), s(2, 3)
array.expand_dims ExpandDims(1) | s(2, 3)
array.flip Flip(1) | s(2, 3)
array.fliplr FlipLR() | s(2, 3)
array.flipud FlipUD() | s(2, 3)
array.get_item GetItem((slice(None), 1)) | s(2, 3)
array.get_item GetItem(([0, 0], [1, 2])) | s(2, 3)
array.hstack Hstack() | s(2, 3), s(2, 1)
array.im2col Im2Col((2, 2), (1, 1), (0, 0), False, (1, 1)) | s(1, 2, 3, 3)
array.moveaxis Moveaxis(0, 1) | s(2, 3)
array.pad Pad(((0, 1), (1, 0)), 'constant') | s(2, 3)
array.pad Pad(((0, 1), (1, 0)), 'constant', constant_values=2) | s(2, 3)
array.permutate Permutate(np.array([1, 0], 'i'), 0, False) | s(2, 3)
array.repeat Repeat(2, 0) | s(2, 3)
array.reshape Reshape((3, 2)) | s(2, 3)
array.rollaxis Rollaxis(1, 0) | s(2, 3)
array.scatter_add ScatterAdd(slice(0, 1)) | s(2, 3), s(1, 3)
array.select_item SelectItem() | s(2, 3), i(3, 2)
array.separate Separate(0) | s(2, 3)
array.space2depth Space2Depth(2) | s(1, 1, 2, 4)
array.spatial_transformer_grid SpatialTransformerGrid((2, 2)) | s(1, 2, 3)
array.spatial_transformer_sampler SpatialTransformerSampler() | s(1, 2, 3, 3), u(1, 2, 2, 2)
array.split_axis SplitAxis([1], 1) | s(2, 3)
array.squeeze Squeeze(1) | s(2, 1, 3)
array.stack Stack(0) | s(2, 3), s(2, 3)
array.swapaxes Swapaxes(0, 1) | s(2, 3)
array.tile Tile((2, 1)) | s(2, 3)
array.transpose Transpose((1, 0)) | s(2, 3)
array.transpose Transpose() | s(2, 3)
array.vstack Vstack() | s(2, 3), s(1, 3)
array.where Where(np.array([True, False, True])) | s(2, 3), s(2, 3)
connection.bilinear BilinearFunction() | s(2, 2), s(2, 3), s(2, 3, 2)
connection.convolution_2d Convolution2DFunction() | s(1, 2, 3, 3), s(2, 2, 2, 2), s(2)
connection.convolution_2d Convolution2DFunction(stride=2, pad=1) | s(1, 2, 3, 3), s(2, 2, 2, 2)
connection.convolution_2d Convolution2DFunction(groups=2, dilate=1) | s(1, 2, 3, 3), s(2, 1, 2, 2)
connection.convolution_nd ConvolutionND(1) | s(1, 2, 4), s(2, 2, 2), s(2)
connection.deconvolution_2d Deconvolution2DFunction() | s(1, 2, 2, 2), s(2, 2, 2, 2), s(2)
connection.deconvolution_nd DeconvolutionND(1) | s(1, 2, 3), s(2, 2, 2), s(2)
connection.embed_id EmbedIDFunction() | i(3, 2), s(3, 2)
connection.linear LinearFunction() | s(2, 3), s(2, 3), s(2)
connection.linear LinearFunction() | s(2, 3), s(2, 3)
connection.local_convolution_2d LocalConvolution2DFunction() | s(1, 2, 3, 3), s(2, 2, 2, 2, 2, 2), s(2, 2, 2)
connection.shift Shift() | s(1, 9, 3, 3)
evaluation.accuracy Accuracy() | s(3, 3), i(3, 3)
evaluation.binary_accuracy BinaryAccuracy() | s(3), i(2, 3)
evaluation.classification_summary ClassificationSummary(None, 1.0, -1) | s(3, 3), i(3, 3)
evaluation.r2_score R2_score(None, 'uniform_average') | s(3), s(3)
loss.absolute_error AbsoluteError() | s(2, 3), s(2, 3)
loss.contrastive Contrastive(1.) | s(2, 3), s(2, 3), i(2, 2)
loss.cross_covariance CrossCovariance() | s(2, 3), s(2, 2)
loss.decov DeCov() | s(2, 3)
loss.hinge Hinge() | s(2, 3), i(3, 2)
loss.huber_loss HuberLoss(.5) | s(2, 3), s(2, 3)
loss.mean_absolute_error MeanAbsoluteError() | s(2, 3), s(2, 3)
loss.mean_squared_error MeanSquaredError() | s(2, 3), s(2, 3)
loss.sigmoid_cross_entropy SigmoidCrossEntropy() | s(2, 3), i(2, 2, 3)
loss.sigmoid_cross_entropy SigmoidCrossEntropy(reduce='no') | s(2, 3), i(2, 2, 3)
loss.softmax_cross_entropy SoftmaxCrossEntropy() | s(2, 3), i(3, 2)
loss.softmax_cross_entropy SoftmaxCrossEntropy(reduce='no') | s(2, 3), i(3, 2)
loss.softmax_cross_entropy SoftmaxCrossEntropy(class_weight=np.arange(3).astype('f')) | s(2, 3), i(3, 2)
loss.squared_error SquaredError() | s(2, 3), s(2, 3)
loss.triplet Triplet(1.) | s(2, 3), s(2, 3), s(2, 3)
math.arctanh Arctanh() | u(2, 3)
math.average Mean(1, False) | s(2, 3)
math.average Mean(None, True) | s(2, 3)
math.basic_math Neg() | s(2, 3)
math.basic_math Absolute() | s(2, 3)
math.basic_math Add() | s(2, 3), s(2, 3)
math.basic_math AddConstant(2) | s(2, 3)
math.basic_math MultiAdd() | s(2, 3), s(2, 3), s(2, 3)
math.basic_math Sub() | s(2, 3), s(2, 3)
math.basic_math SubFromConstant(2) | s(2, 3)
math.basic_math Mul() | s(2, 3), s(2, 3)
math.basic_math MulConstant(2.5) | s(2, 3)
math.basic_math Div() | s(2, 3), u(2, 3)
math.basic_math DivFromConstant(2) | u(2, 3)
math.basic_math PowVarVar() | u(2, 3), s(2, 3)
math.basic_math PowVarConst(3) | s(2, 3)
math.basic_math PowConstVar(2.) | s(2, 3)
math.batch_l2_norm_squared BatchL2NormSquared() | s(2, 3)
math.clip Clip(-1., 1.) | s(2, 3)
math.cumprod Cumprod(1) | s(2, 3)
math.cumsum Cumsum(1) | s(2, 3)
math.cumsum Cumsum() | s(2, 3)
math.det BatchDet() | s(2, 2, 2)
math.erf Erf() | s(2, 3)
math.erfc Erfc() | s(2, 3)
math.erfinv ErfInv() | u(2, 3)
math.digamma DiGamma() | u(2, 3)
math.exponential Exp() | s(2, 3)
math.exponential Log() | u(2, 3)
math.exponential Log2() | u(2, 3)
math.exponential Log10() | u(2, 3)
math.exponential_m1 Expm1() | s(2, 3)
math.fft FFT('fft') | s(2, 4), s(2, 4)
math.fmod Fmod() | s(2, 3), u(2, 3)
math.hyperbolic Cosh() | s(2, 3)
math.hyperbolic Sinh() | s(2, 3)
math.identity Identity() | s(2, 3)
math.identity Identity() | s(2, 3), s(2)
math.inv Inv() | s(2, 2)
math.inv BatchInv() | s(2, 2, 2)
math.lgamma LGamma() | u(2, 3)
math.linear_interpolate LinearInterpolate() | u(2, 3), s(2, 3), s(2, 3)
math.log_ndtr LogNdtr() | s(2, 3)
math.logarithm_1p Log1p() | u(2, 3)
math.logsumexp LogSumExp() | s(2, 3)
math.logsumexp LogSumExp(1) | s(2, 3)
math.matmul MatMul() | s(2, 3), s(3, 2)
math.matmul MatMul(True, True) | s(3, 2), s(2, 3)
math.maximum Maximum() | s(2, 3), s(2, 3)
math.minimum Minimum() | s(2, 3), s(2, 3)
math.minmax Max(1) | s(2, 3)
math.minmax Min(0, True) | s(2, 3)
math.minmax ArgMax(1) | s(2, 3)
math.minmax ArgMin() | s(2, 3)
math.ndtr Ndtr() | s(2, 3)
math.ndtri Ndtri() | u(2, 3)
math.prod Prod() | s(2, 3)
math.prod Prod(1, True) | s(2, 3)
math.sparse_matmul CooMatMul(np.array([0, 1], 'i'), np.array([1, 0], 'i'), (2, 2)) | s(2), s(2, 3)
math.sqrt Sqrt() | u(2, 3)
math.square Square() | s(2, 3)
math.sum Sum() | s(2, 3)
math.sum Sum(1, True) | s(2, 3)
math.sum SumTo((1, 3)) | s(2, 3)
math.trigonometric Sin() | s(2, 3)
math.trigonometric Cos() | s(2, 3)
math.trigonometric Tan() | u(2, 3)
math.trigonometric Arcsin() | u(2, 3)
math.trigonometric Arccos() | u(2, 3)
math.trigonometric Arctan() | s(2, 3)
math.trigonometric Arctan2() | s(2, 3), s(2, 3)
noise.dropout Dropout(.5, mask=np.full((2, 3), 2, 'f')) | s(2, 3)
noise.gaussian Gaussian(eps=np.ones((2, 3), 'f')) | s(2, 3), s(2, 3)
noise.simplified_dropconnect SimplifiedDropconnect(.5, np.ones((2, 2, 3), '?')) | s(2, 3), s(2, 3), s(2)
normalization.batch_normalization BatchNormalization() | s(3, 2), s(2), s(2)
normalization.batch_normalization FixedBatchNormalization() | s(3, 2), s(2), s(2), s(2), u(2)
normalization.group_normalization GroupNormalization(2) | s(2, 4, 3), s(4), s(4)
normalization.l2_normalization NormalizeL2() | s(2, 3)
normalization.layer_normalization LayerNormalization() | s(2, 3), s(3), s(3)
normalization.local_response_normalization LocalResponseNormalization() | s(1, 6, 2, 2)
pooling.average_pooling_2d AveragePooling2D(2, 1, 0, False) | s(1, 2, 3, 3)
pooling.average_pooling_nd AveragePoolingND(1, 2, 1) | s(1, 2, 4)
pooling.max_pooling_nd MaxPoolingND(1, 2, 1) | s(1, 2, 4)
pooling.roi_pooling_2d ROIPooling2D(2, 2, 1.) | s(1, 2, 4, 4), np.array([[0, 0, 0, 3, 3]], 'f')
pooling.unpooling_2d Unpooling2D(2, cover_all=False) | s(1, 2, 2, 2)
pooling.unpooling_nd UnpoolingND(1, 2, cover_all=False) | s(1, 2, 3)
rnn.lstm LSTM() | s(2, 2), s(2, 8)
rnn.slstm SLSTM() | s(2, 2), s(2, 2), s(2, 8), s(2, 8)
rnn.tree_lstm TreeLSTM() | s(2, 2), s(2, 2), s(2, 10)
"""


# Chainer derives these classes from Function, and they are called.
CALLED = (
    "SpatialTransformerGrid SpatialTransformerSampler BinaryAccuracy R2_score "
    "ClassificationSummary DeCov Hinge"
).split()


class Numbers:
    """No two alike."""

    def __init__(self):
        self.drawn = 0

    def draw(self, shape):
        size = int(np.prod(shape))
        self.drawn += size + 3
        return ((np.arange(size) + self.drawn) * 0.6180339887 % 1).reshape(shape)

    def names(self):
        return {
            "np": np,
            "s": lambda *shape: (4 * self.draw(shape) - 2).astype("f"),
            "u": lambda *shape: (0.05 + 0.9 * self.draw(shape)).astype("f"),
            "i": lambda n, *shape: (self.draw(shape) * n).astype("i"),
        }


def applied(row):
    """Outputs, gradients, the label and the class of the creator."""
    path, _, rest = row.partition(" ")
    call, _, inputs = rest.partition(" | ")
    module = importlib.import_module("chainer.functions." + path)
    numbers = Numbers().names()
    xs = [chainer.Variable(x) for x in eval("[" + inputs + "]", numbers)]
    name = call.split("(")[0]
    function = eval(call, {"np": np, name: getattr(module, name)})
    if hasattr(function, "apply") and name not in CALLED:
        ys = function.apply(xs)
    else:  # an old Function
        ys = function(*xs)
        ys = ys if isinstance(ys, tuple) else (ys,)
    known = [y.array for y in ys], type(function).__name__, function.label
    ready = [y for y in ys if y.dtype.kind == "f" and y.requires_grad]
    wanted = [x for x in xs if x.dtype.kind == "f"]
    gys = [
        chainer.Variable(
            np.asarray(1 + 0.25 * np.arange(y.size).reshape(y.shape), y.dtype)
        )
        for y in ready
    ]
    try:
        gxs = chainer.grad(ready, wanted, gys)
    except Exception as error:
        return known, type(error).__name__
    return known, [None if gx is None else gx.array for gx in gxs]


GENERATED = {row: lambda row=row: applied(row) for row in ROWS.strip().split("\n")}


def case_cached_scores():
    from chainer.functions.loss.softmax_cross_entropy import SoftmaxCrossEntropy

    function = SoftmaxCrossEntropy()
    function.apply((np.eye(3, dtype="f"), np.arange(3).astype("i")))
    return function.y


def case_scores_that_are_not_cached():
    from chainer.functions.loss.softmax_cross_entropy import SoftmaxCrossEntropy

    function = SoftmaxCrossEntropy(cache_score=False)
    function.apply((np.eye(3, dtype="f"), np.arange(3).astype("i")))
    return function.y


def case_mask_of_dropout():
    from chainer.functions.noise.dropout import Dropout

    function = Dropout(0.5)
    (y,) = function.apply((np.ones((20, 20), "f"),))
    same = (y.array == function.mask).all()
    return (
        bool(same),
        sorted(set(function.mask.ravel().tolist())),
        function.dropout_ratio,
    )


def case_ratio_of_dropout():
    from chainer.functions.noise.dropout import Dropout

    Dropout(1.5)


def case_running_averages():
    from chainer.functions.normalization.batch_normalization import BatchNormalization

    mean, var = np.zeros(2, "f"), np.ones(2, "f")
    function = BatchNormalization(mean=mean, var=var, decay=0.5)
    x = chainer.Variable(Numbers().draw((4, 2)).astype("f"))
    (y,) = function.apply((x, np.ones(2, "f"), np.zeros(2, "f")))
    F.sum(y * y).backward()
    return mean, var, x.grad


def case_class_called():
    from chainer.functions.activation.relu import ReLU

    return ReLU()(np.ones(2, "f"))


def case_second_derivative():
    from chainer.functions.math.exponential import Exp

    x = chainer.Variable(np.array([1.0, 2.0], "f"))
    (y,) = Exp().apply((x,))
    (gx,) = chainer.grad([F.sum(y * y)], [x], enable_double_backprop=True)
    F.sum(gx).backward()
    return gx, x.grad


def case_creator_of_an_applied_class():
    from chainer.functions.math.trigonometric import Sin

    function = Sin()
    (y,) = function.apply((np.ones(2, "f"),))
    return y.creator is function or y.creator is None, isinstance(
        function, chainer.FunctionNode
    )


def case_hooks_see_classes():
    from chainer.functions.math.trigonometric import Sin

    x = chainer.Variable(np.ones(2, "f"))
    with chainer.function_hooks.TimerHook() as hook:
        Sin().apply((x,))
    return [name for name, _ in hook.call_history]
