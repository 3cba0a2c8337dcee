"""The networks' layers and functions in renga."""

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from tests.benchmarks.networks.library import Library, same_size


class Side(Library):
    functions = F

    def __init__(self, mixed=False):
        super().__init__()
        self.layers = renga.ChainList()
        self.dtype = renga.mixed_bfloat16 if mixed else np.dtype("f")

    def build(self, network, **sizes):
        with renga.using_config("dtype", self.dtype):
            return network(self, **sizes)

    def training(self, task):
        """A function that takes a step and returns its loss."""
        optimizer = renga.optimizers.Adam(1e-4).setup(self.layers)

        def step():
            with renga.using_config("dtype", self.dtype):
                loss = task.loss(task.forward(task.x))
                self.layers.cleargrads()
                loss.backward()
                optimizer.update()
            return float(loss.array)

        return step

    def evaluation(self, task):
        """A function that computes the outputs and returns the first number."""

        def evaluate():
            with renga.using_config("dtype", self.dtype), renga.no_backprop_mode():
                with renga.using_config("train", False):
                    return float(task.forward(task.x).array.flat[0])

        return evaluate

    # What a network is trained for.

    def constant(self, array):
        return array

    def classes(self, count, *shape):
        """The cross entropy of scores with random classes."""
        t = self.integers(count, *shape)
        return lambda y: F.softmax_cross_entropy(y, t)

    def targets(self, *shape):
        """The mean squared error to random numbers."""
        t = self.normal(*shape)
        return lambda y: F.mean_squared_error(y, t)

    def variable(self, array):
        """One whose gradient is wanted."""
        return renga.Variable(array)

    def gradient(self, y, x):
        """That of a number, which can be differentiated again."""
        return renga.grad([y], [x], enable_double_backprop=True)[0]

    def detached(self, x):
        """As a constant."""
        return x.array if isinstance(x, renga.Variable) else x

    # Layers with parameters.

    def add(self, link):
        self.layers.add_link(link)
        return link

    def conv(
        self,
        channels,
        filters,
        ksize=3,
        stride=1,
        pad=None,
        groups=1,
        dilation=1,
        bias=True,
        axes=2,
    ):
        pad = same_size(ksize, dilation) if pad is None else pad
        extents = ksize if isinstance(ksize, tuple) else (ksize,) * axes
        link = L.ConvolutionND(
            axes,
            channels,
            filters,
            ksize,
            stride,
            pad,
            nobias=not bias,
            initialW=self.initial(filters, channels // groups, *extents),
            dilate=dilation,
            groups=groups,
        )
        return self.add(link)

    def deconv(self, channels, filters, ksize, stride, pad):
        w = self.initial(channels, filters, ksize, ksize)
        link = L.Deconvolution2D(channels, filters, ksize, stride, pad, initialW=w)
        return self.add(link)

    def linear(self, size, units, bias=True):
        """Applied to the last axis."""
        w = self.initial(units, size)
        link = self.add(L.Linear(size, units, nobias=not bias, initialW=w))
        return lambda x: link(x, n_batch_axes=x.ndim - 1)

    def embed(self, count, units):
        return self.add(L.EmbedID(count, units, self.initial(count, units)))

    def batch_norm(self, channels):
        return self.add(L.BatchNormalization(channels))

    def group_norm(self, groups, channels):
        return self.add(L.GroupNormalization(groups, channels))

    def layer_norm(self, units):
        """Over the last axis."""
        link = self.add(L.LayerNormalization(units))
        return lambda x: F.reshape(link(F.reshape(x, (-1, units))), x.shape)

    def parameter(self, *shape, value=None):
        """A parameter of one value, or of random ones."""
        initial = self.initial(*shape) if value is None else np.full(shape, value, "f")
        return self.add(L.Parameter(initial)).W

    # Activations and functions of each element.

    def sigmoid(self, x):
        return F.sigmoid(x)

    def log_sigmoid(self, x):
        return -F.softplus(-x)

    def tanh(self, x):
        return F.tanh(x)

    def exp(self, x):
        return F.exp(x)

    def log(self, x):
        return F.log(x)

    def sin(self, x):
        return F.sin(x)

    def cos(self, x):
        return F.cos(x)

    def rsqrt(self, x):
        return F.rsqrt(x)

    def dropout(self, x, ratio):
        return F.dropout(x, ratio)

    def softmax(self, x):
        """Over the last axis."""
        return F.softmax(x, axis=-1)

    # Reductions and products.

    def sum(self, x, axis=None, keepdims=False):
        return F.sum(x, axis=axis, keepdims=keepdims)

    def mean(self, x, axis=None, keepdims=False):
        return F.mean(x, axis=axis, keepdims=keepdims)

    def max(self, x, axis):
        return F.max(x, axis=axis)

    def matmul(self, a, b):
        return F.matmul(a, b)

    def argmin(self, x):
        """Along the last axis, of a constant."""
        return self.detached(x).argmin(-1)

    def top(self, x, count):
        """The indices of the largest along the last axis, of a constant."""
        return np.argpartition(self.detached(x), -count, -1)[..., -count:]

    def conv_with(self, x, w, pad, groups=1):
        """A convolution of images with weights that are computed."""
        return F.convolution_2d(x, w, None, 1, pad, groups=groups)

    # Pooling and sizes of images.

    def max_pool(self, x, ksize, stride=None, pad=0):
        return F.max_pooling_nd(x, ksize, stride, pad, cover_all=False)

    def average_pool(self, x, ksize, stride=None, pad=0):
        return F.average_pooling_2d(x, ksize, stride, pad)

    def twice_as_large(self, x):
        """Each pixel becomes 2 along each axis."""
        return F.unpooling_nd(x, 2, cover_all=False)

    def resize(self, x, size):
        return F.resize_images(x, (size, size))

    def depth_to_space(self, x, ratio):
        """Channels become pixels, in an order that differs between the libraries."""
        return F.depth2space(x, ratio)

    def reflect(self, x, pad):
        sides = (0, 0), (0, 0), (pad, pad), (pad, pad)
        return F.pad(x, sides, "reflect")

    # Shapes and indices.

    def reshape(self, x, *shape):
        return F.reshape(x, shape)

    def transpose(self, x, *axes):
        return F.transpose(x, axes)

    def broadcast(self, x, *shape):
        return F.broadcast_to(x, shape)

    def concat(self, xs, axis=1):
        return F.concat(xs, axis)

    def stack(self, xs):
        return F.stack(xs)

    def roll(self, x, shift, axes):
        """Elements move by ``shift``, and those that leave come in again."""
        for axis in axes:
            before = (slice(None),) * axis
            ends = x[(*before, slice(-shift, None))], x[(*before, slice(None, -shift))]
            x = F.concat(ends, axis)
        return x

    def rows(self, x, indices):
        return x[indices]

    def sum_into_rows(self, x, indices, count):
        """Rows of which each is the sum of those of ``x`` that have its index."""
        nothing = np.zeros((count, *x.shape[1:]), x.dtype)
        return F.scatter_add(nothing, indices, x)
