# ruff: noqa: E501
"""The classes that only pass their options on.

A row has the module in ``chainer.functions``, the class with its options, its inputs,
and the expression for its outputs.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy

import renga.functions as F
from renga._core import Variable
from renga.backends import cuda
from renga.chainer.function_classes import gradients, products, with_state
from renga.chainer.function_classes.operation import OperationNode
from renga.chainer.function_classes.window_attributes import window_attributes
from renga.core.types import ArrayLike

ROWS = """
activation.clipped_relu ClippedReLU(z): x -> F.clipped_relu(x, self.z)
activation.crelu CReLU(axis=1): x -> F.crelu(x, self.axis)
activation.elu ELU(alpha=1.0): x -> F.elu(x, self.alpha)
activation.hard_sigmoid HardSigmoid(): x -> F.hard_sigmoid(x)
activation.leaky_relu LeakyReLU(slope=0.2): x -> F.leaky_relu(x, self.slope)
activation.log_softmax LogSoftmax(axis=1): x -> F.log_softmax(x, self.axis)
activation.prelu PReLUFunction(): x, W -> F.prelu(x, W)
activation.relu ReLU(): x -> F.relu(x)
activation.sigmoid Sigmoid(): x -> F.sigmoid(x)
activation.softmax Softmax(axis=1): x -> F.softmax(x, self.axis)
activation.softplus Softplus(beta=1.0): x -> F.softplus(x, self.beta)
activation.swish Swish(): x, beta -> F.swish(x, beta)
activation.tanh Tanh(): x -> F.tanh(x)
array.as_strided AsStrided(shape, strides, storage_offset=None): x -> F.as_strided(x, self.shape, self.strides, self.storage_offset)
array.broadcast Broadcast(): *xs -> F.broadcast(*xs)
array.broadcast BroadcastTo(shape): x -> F.broadcast_to(x, self.shape)
array.cast Cast(type): x -> F.cast(x, self.type)
array.concat Concat(axis=1): *xs -> F.concat(xs, self.axis)
array.copy Copy(in_device, out_device): x -> F.copy(x, self.out_device)
array.depth2space Depth2Space(r): x -> F.depth2space(x, self.r)
array.diagonal Diagonal(offset, axis1, axis2): x -> F.diagonal(x, self.offset, self.axis1, self.axis2)
array.dstack Dstack(): *xs -> F.dstack(xs)
array.expand_dims ExpandDims(axis): x -> F.expand_dims(x, self.axis)
array.flip Flip(axis): x -> F.flip(x, self.axis)
array.fliplr FlipLR(): x -> F.fliplr(x)
array.flipud FlipUD(): x -> F.flipud(x)
array.get_item GetItem(slices): x -> F.get_item(x, self.slices)
array.hstack Hstack(): *xs -> F.hstack(xs)
array.im2col Im2Col(ksize, stride, pad, cover_all, dilate): x -> F.im2col(x, self.ksize, self.stride, self.pad, self.cover_all, self.dilate)
array.moveaxis Moveaxis(source, destination): x -> F.moveaxis(x, self.source, self.destination)
array.pad Pad(pad_width, mode, **keywords): x -> F.pad(x, self.pad_width, self.mode, **self.keywords)
array.pad_sequence PadSequence(length, padding): *xs -> F.pad_sequence(xs, self.length, self.padding)
array.permutate Permutate(indices, axis, inv): x -> F.permutate(x, self.indices, self.axis, self.inv)
array.repeat Repeat(repeats, axis=None): x -> F.repeat(x, self.repeats, self.axis)
array.reshape Reshape(shape): x -> F.reshape(x, self.shape)
array.resize_images ResizeImages(output_shape, mode, align_corners): x -> F.resize_images(x, self.output_shape, mode=self.mode, align_corners=self.align_corners)
array.rollaxis Rollaxis(axis, start): x -> F.rollaxis(x, self.axis, self.start)
array.scatter_add ScatterAdd(slices): a, b -> F.scatter_add(a, self.slices, b)
array.select_item SelectItem(): x, t -> F.select_item(x, t)
array.separate Separate(axis): x -> F.separate(x, self.axis)
array.space2depth Space2Depth(r): x -> F.space2depth(x, self.r)
array.spatial_transformer_grid SpatialTransformerGrid(output_shape): theta -> F.spatial_transformer_grid(theta, self.output_shape)
array.spatial_transformer_sampler SpatialTransformerSampler(): x, grid -> F.spatial_transformer_sampler(x, grid)
array.split_axis SplitAxis(indices_or_sections, axis): x -> F.split_axis(x, self.indices_or_sections, self.axis)
array.squeeze Squeeze(axis=None): x -> F.squeeze(x, self.axis)
array.stack Stack(axis): *xs -> F.stack(xs, self.axis)
array.swapaxes Swapaxes(axis1, axis2): x -> F.swapaxes(x, self.axis1, self.axis2)
array.tile Tile(reps): x -> F.tile(x, self.reps)
array.transpose Transpose(axes=None): x -> F.transpose(x, self.axes)
array.transpose_sequence TransposeSequence(length): *xs -> F.transpose_sequence(xs)
array.vstack Vstack(): *xs -> F.vstack(xs)
array.where Where(condition): x, y -> F.where(self.condition, x, y)
connection.bilinear BilinearFunction(): e1, e2, W, *linear -> F.bilinear(e1, e2, W, *linear)
connection.convolution_2d Convolution2DFunction(stride=1, pad=0, cover_all=False, dilate=1, groups=1): x, W, *b -> F.convolution_2d(x, W, *(b or [None]), self.stride, self.pad, self.cover_all, dilate=self.dilate, groups=self.groups)
connection.convolution_nd ConvolutionND(ndim, stride=1, pad=0, cover_all=False, dilate=1, groups=1): x, W, *b -> F.convolution_nd(x, W, *(b or [None]), self.stride, self.pad, self.cover_all, self.dilate, self.groups)
connection.deconvolution_2d Deconvolution2DFunction(stride=1, pad=0, outsize=None, dilate=1, groups=1): x, W, *b -> F.deconvolution_2d(x, W, *(b or [None]), self.stride, self.pad, self.outsize, dilate=self.dilate, groups=self.groups)
connection.deconvolution_nd DeconvolutionND(ndim, stride=1, pad=0, outsize=None, dilate=1, groups=1): x, W, *b -> F.deconvolution_nd(x, W, *(b or [None]), self.stride, self.pad, self.outsize, self.dilate, self.groups)
connection.embed_id EmbedIDFunction(ignore_label=None): x, W -> F.embed_id(x, W, self.ignore_label)
connection.linear LinearFunction(): x, W, *b -> F.linear(x, W, *b)
connection.local_convolution_2d LocalConvolution2DFunction(stride=1): x, W, *b -> F.local_convolution_2d(x, W, *(b or [None]), self.stride)
connection.shift Shift(ksize=3, dilate=1): x -> F.shift(x, self.ksize, self.dilate)
evaluation.accuracy Accuracy(ignore_label=None): y, t -> F.accuracy(y, t, self.ignore_label)
evaluation.binary_accuracy BinaryAccuracy(): y, t -> F.binary_accuracy(y, t)
evaluation.classification_summary ClassificationSummary(label_num, beta, ignore_label): y, t -> F.classification_summary(y, t, self.label_num, self.beta, self.ignore_label)
evaluation.r2_score R2_score(sample_weight, multioutput): y, t -> F.r2_score(y, t, self.sample_weight, self.multioutput)
loss.absolute_error AbsoluteError(): x0, x1 -> F.absolute_error(x0, x1)
loss.contrastive Contrastive(margin, reduce='mean'): x0, x1, y -> F.contrastive(x0, x1, y, self.margin, self.reduce)
loss.cross_covariance CrossCovariance(reduce='half_squared_sum'): y, z -> F.cross_covariance(y, z, self.reduce)
loss.decov DeCov(reduce='half_squared_sum'): h -> F.decov(h, self.reduce)
loss.hinge Hinge(norm='L1', reduce='mean'): x, t -> F.hinge(x, t, self.norm, self.reduce)
loss.huber_loss HuberLoss(delta, reduce='sum_along_second_axis'): x, t -> F.huber_loss(x, t, self.delta, self.reduce)
loss.mean_absolute_error MeanAbsoluteError(): x0, x1 -> F.mean_absolute_error(x0, x1)
loss.mean_squared_error MeanSquaredError(): x0, x1 -> F.mean_squared_error(x0, x1)
loss.sigmoid_cross_entropy SigmoidCrossEntropy(normalize=True, reduce='mean'): x, t -> F.sigmoid_cross_entropy(x, t, self.normalize, self.reduce)
loss.squared_error SquaredError(): x0, x1 -> F.squared_error(x0, x1)
loss.triplet Triplet(margin, reduce='mean'): anchor, positive, negative -> F.triplet(anchor, positive, negative, self.margin, self.reduce)
math.arctanh Arctanh(): x -> F.arctanh(x)
math.average Mean(axis, keepdims): x -> F.mean(x, axis=self.axis, keepdims=self.keepdims)
math.basic_math Neg(): x -> -x
math.basic_math Absolute(): x -> F.absolute(x)
math.basic_math Add(): a, b -> F.add(a, b)
math.basic_math AddConstant(value): x -> x + self.value
math.basic_math MultiAdd(): *xs -> F.add(*xs)
math.basic_math Sub(): a, b -> a - b
math.basic_math SubFromConstant(value): x -> self.value - x
math.basic_math Mul(): a, b -> a * b
math.basic_math MulConstant(value): x -> x * self.value
math.basic_math Div(): a, b -> a / b
math.basic_math DivFromConstant(value): x -> self.value / x
math.basic_math PowVarVar(): a, b -> a ** b
math.basic_math PowVarConst(value): x -> x ** self.value
math.basic_math PowConstVar(value): x -> self.value ** x
math.batch_l2_norm_squared BatchL2NormSquared(): x -> F.batch_l2_norm_squared(x)
math.cholesky Cholesky(): a -> F.cholesky(a)
math.clip Clip(x_min, x_max): x -> F.clip(x, self.x_min, self.x_max)
math.cumprod Cumprod(axis): x -> F.cumprod(x, self.axis)
math.cumsum Cumsum(axis=None): x -> F.cumsum(x, self.axis)
math.det BatchDet(): a -> F.batch_det(a)
math.digamma DiGamma(): x -> F.digamma(x)
math.erf Erf(): x -> F.erf(x)
math.erfc Erfc(): x -> F.erfc(x)
math.erfcinv ErfcInv(): x -> F.erfcinv(x)
math.erfcx Erfcx(): x -> F.erfcx(x)
math.erfinv ErfInv(): x -> F.erfinv(x)
math.exponential Exp(): x -> F.exp(x)
math.exponential Log(): x -> F.log(x)
math.exponential Log2(): x -> F.log2(x)
math.exponential Log10(): x -> F.log10(x)
math.exponential_m1 Expm1(): x -> F.expm1(x)
math.fft FFT(method): real, imag -> getattr(F, self.method)((real, imag))
math.fmod Fmod(): x, divisor -> F.fmod(x, divisor)
math.hyperbolic Cosh(): x -> F.cosh(x)
math.hyperbolic Sinh(): x -> F.sinh(x)
math.identity Identity(): *xs -> F.identity(*xs)
math.inv Inv(): a -> F.inv(a)
math.inv BatchInv(): a -> F.batch_inv(a)
math.lgamma LGamma(): x -> F.lgamma(x)
math.linear_interpolate LinearInterpolate(): p, x, y -> F.linear_interpolate(p, x, y)
math.log_ndtr LogNdtr(): x -> F.log_ndtr(x)
math.logarithm_1p Log1p(): x -> F.log1p(x)
math.logsumexp LogSumExp(axis=None): x -> F.logsumexp(x, self.axis)
math.matmul MatMul(transa=False, transb=False, transc=False, dtype=None): a, b -> F.swapaxes(F.matmul(a, b, self.transa, self.transb), -1, -2) if self.transc else F.matmul(a, b, self.transa, self.transb)
math.matmul BatchMatMul(transa=False, transb=False): a, b -> F.batch_matmul(a, b, self.transa, self.transb)
math.maximum Maximum(): a, b -> F.maximum(a, b)
math.minimum Minimum(): a, b -> F.minimum(a, b)
math.minmax Max(axis=None, keepdims=False): x -> F.max(x, self.axis, self.keepdims)
math.minmax Min(axis=None, keepdims=False): x -> F.min(x, self.axis, self.keepdims)
math.minmax ArgMax(axis=None): x -> F.argmax(x, self.axis)
math.minmax ArgMin(axis=None): x -> F.argmin(x, self.axis)
math.ndtr Ndtr(): x -> F.ndtr(x)
math.ndtri Ndtri(): x -> F.ndtri(x)
math.polygamma PolyGamma(): n, x -> F.polygamma(n, x)
math.prod Prod(axis=None, keepdims=False): x -> F.prod(x, self.axis, self.keepdims)
math.sqrt Sqrt(): x -> F.sqrt(x)
math.square Square(): x -> F.square(x)
math.sum Sum(axis=None, keepdims=False): x -> F.sum(x, self.axis, self.keepdims)
math.sum SumTo(_shape): x -> F.sum_to(x, self._shape)
math.trigonometric Sin(): x -> F.sin(x)
math.trigonometric Cos(): x -> F.cos(x)
math.trigonometric Tan(): x -> F.tan(x)
math.trigonometric Arcsin(): x -> F.arcsin(x)
math.trigonometric Arccos(): x -> F.arccos(x)
math.trigonometric Arctan(): x -> F.arctan(x)
math.trigonometric Arctan2(): x1, x2 -> F.arctan2(x1, x2)
math.zeta Zeta(x): q -> F.zeta(self.x, q)
normalization.batch_normalization FixedBatchNormalization(eps=2e-5, axis=None): x, gamma, beta, mean, var -> F.fixed_batch_normalization(x, gamma, beta, mean, var, self.eps, self.axis)
normalization.decorrelated_batch_normalization FixedDecorrelatedBatchNormalization(groups): x, mean, projection -> F.fixed_decorrelated_batch_normalization(x, mean, projection, self.groups)
normalization.group_normalization GroupNormalization(groups, eps=1e-5): x, gamma, beta -> F.group_normalization(x, self.groups, gamma, beta, self.eps)
normalization.l2_normalization NormalizeL2(eps=1e-5, axis=1): x -> F.normalize(x, self.eps, self.axis)
normalization.layer_normalization LayerNormalization(eps=1e-5): x, gamma, beta -> F.layer_normalization(x, gamma, beta, self.eps)
normalization.local_response_normalization LocalResponseNormalization(n=5, k=2, alpha=1e-4, beta=.75): x -> F.local_response_normalization(x, self.n, self.k, self.alpha, self.beta)
pooling.average_pooling_2d AveragePooling2D(ksize, stride=None, pad=0, cover_all=False): x -> F.average_pooling_2d(x, self.ksize, self.stride, self.pad)
pooling.average_pooling_nd AveragePoolingND(ndim, ksize, stride=None, pad=0, cover_all=False, pad_value=0): x -> F.average_pooling_nd(x, self.ksize, self.stride, self.pad, self.pad_value)
pooling.roi_average_align_2d ROIAverageAlign2D(outsize, spatial_scale, sampling_ratio=None): x, rois, indices -> F.roi_average_align_2d(x, rois, indices, self.outsize, self.spatial_scale, self.sampling_ratio)
pooling.roi_average_pooling_2d ROIAveragePooling2D(outsize, spatial_scale): x, rois, indices -> F.roi_average_pooling_2d(x, rois, indices, self.outsize, self.spatial_scale)
pooling.roi_max_align_2d ROIMaxAlign2D(outsize, spatial_scale, sampling_ratio=None): x, rois, indices -> F.roi_max_align_2d(x, rois, indices, self.outsize, self.spatial_scale, self.sampling_ratio)
pooling.roi_max_pooling_2d ROIMaxPooling2D(outsize, spatial_scale): x, rois, indices -> F.roi_max_pooling_2d(x, rois, indices, self.outsize, self.spatial_scale)
pooling.roi_pooling_2d ROIPooling2D(outh, outw, spatial_scale): x, rois -> F.roi_pooling_2d(x, rois, self.outh, self.outw, self.spatial_scale)
pooling.unpooling_2d Unpooling2D(ksize, stride=None, pad=0, outsize=None, cover_all=True): x -> F.unpooling_2d(x, self.ksize, self.stride, self.pad, self.outsize, self.cover_all)
pooling.unpooling_nd UnpoolingND(ndim, ksize, stride=None, pad=0, outsize=None, cover_all=True): x -> F.unpooling_nd(x, self.ksize, self.stride, self.pad, self.outsize, self.cover_all)
pooling.upsampling_2d Upsampling2D(indexes, ksize, stride=None, pad=0, outsize=None, cover_all=True): x -> F.upsampling_2d(x, self.indexes, self.ksize, self.stride, self.pad, self.outsize, self.cover_all)
rnn.lstm LSTM(): c_prev, x -> F.lstm(c_prev, x)
rnn.slstm SLSTM(): c_prev1, c_prev2, x1, x2 -> F.slstm(c_prev1, c_prev2, x1, x2)
rnn.tree_lstm TreeLSTM(): *inputs -> F.tree_lstm(*inputs)
"""


# Where they are not the names of the classes.
LABELS = {
    "Absolute": "|_|",
    "Add": "_ + _",
    "AddConstant": "_ + {value}",
    "BatchDet": "det",
    "Cholesky": "cholesky",
    "DiGamma": "digamma",
    "Div": "_ / _",
    "DivFromConstant": "{value} / _",
    "LogNdtr": "log_ndtr",
    "Mul": "_ * _",
    "MulConstant": "_ * {value}",
    "Neg": "__neg__",
    "PowConstVar": "{value} ** _",
    "PowVarConst": "_ ** {value}",
    "PowVarVar": "_ ** _",
    "Sub": "_ - _",
    "SubFromConstant": "{value} - _",
    **{
        name: name.lower()
        for name in (
            "Erf Erfc ErfInv Exp Log Log2 Log10 Expm1 Fmod Cosh Sinh LGamma Log1p "
            "Ndtr Ndtri Sqrt Square Sin Cos Tan Arcsin Arccos Arctan Arctan2"
        ).split()
    },
}
# Chainer's classes that retain their first output.
RETAINING = (
    "BatchDet BatchInv Cholesky ELU ErfInv ErfcInv Exp Expm1 Inv LSTM LeakyReLU "
    "LocalResponseNormalization LogSoftmax LogSumExp Max Min Ndtri PowConstVar "
    "PowVarVar ReLU SLSTM Sigmoid Softmax Sqrt Tanh"
).split()
# Chainer derives these classes from Function: their objects are called.
CALLED = (
    "BinaryAccuracy ClassificationSummary DeCov Hinge R2_score ROIAverageAlign2D "
    "ROIAveragePooling2D ROIMaxAlign2D ROIMaxPooling2D SpatialTransformerGrid "
    "SpatialTransformerSampler"
).split()


def value_label(value: object) -> str:
    """An operand in the label of an operation."""
    if isinstance(value, (Variable, numpy.ndarray, cuda.ndarray)):
        return "constant array"
    if not numpy.isscalar(value):
        raise ValueError(
            f"label: expected a Variable, an array or a number, got {type(value)}"
        )
    text = str(value)
    return f"({text})" if value < 0 else text  # type: ignore[operator]


def _labelled(label: str, node: Any) -> str:
    """The label of an operation, with its number if it has one."""
    if "{" not in label:
        return label
    return label.format(value=value_label(node.value))


class CalledOperation(OperationNode):
    """Is called with its inputs, and returns one Variable or a tuple."""

    def __call__(
        self, *inputs: ArrayLike, **kwargs: object
    ) -> Variable | tuple[Variable, ...]:
        ys = self.apply(inputs)
        return ys if len(ys) > 1 else ys[0]


def _class_of(module: str, name: str, options: str, inputs: str, text: str) -> type:
    """The class of a row."""
    keep = eval(f"lambda {options}: locals()")
    variables = [part.strip() for part in inputs.split(",")]
    singles = [part for part in variables if part[0] != "*"]
    # Arithmetic is that of Variables.
    converted = "".join(f"{x}=F.identity({x}), " for x in singles)
    result = f"(lambda {', '.join(singles)}: {text})({converted})" if singles else text
    compute = eval(f"lambda self, {inputs}: {result}", {"F": F})

    def __init__(self: Any, *args: object, **kwargs: object) -> None:
        kept = keep(*args, **kwargs)
        vars(self).update({**kept, **window_attributes(name, kept)})

    __init__.__signature__ = inspect.signature(keep)  # type: ignore[attr-defined]
    doc = f"Calls ``{text}``."
    members: dict[str, Any] = {"__init__": __init__, "compute": compute, "__doc__": doc}
    if name in RETAINING:
        members["outputs_retained"] = (0,)
    if name in LABELS:
        members["label"] = property(functools.partial(_labelled, LABELS[name]))
    base = CalledOperation if name in CALLED else OperationNode
    return type(name, (base,), {**members, "__module__": module})


@functools.cache
def classes() -> dict[tuple[str, str], type]:
    """The classes, by their modules and names in Chainer."""
    found = {}
    for row in ROWS.strip().split("\n"):
        signature, _, rest = row.partition("): ")
        path, _, call = signature.partition(" ")
        name, _, options = call.partition("(")
        inputs, _, text = rest.partition(" -> ")
        module = "chainer.functions." + path
        found[module, name] = _class_of(module, name, options, inputs, text)
    for modules in (gradients.MODULES, products.MODULES, with_state.MODULES):
        for path, own in modules.items():
            found.update({("chainer.functions." + path, c.__name__): c for c in own})
    return found
