"""The networks' layers and functions in PyTorch.

Its memory is plain or channels-last, or the network is compiled.
"""

import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.benchmarks.networks.library import Library, same_size

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
MAX_POOLING = {4: F.max_pool2d, 5: F.max_pool3d}
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


class BatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch normalization of any number of axes."""

    def _check_input_dim(self, x):
        pass


class Side(Library):
    functions = F

    def __init__(self, mixed=False, channels_last=False, compiled=False):
        super().__init__()
        self.layers = nn.ModuleList()
        self.mixed, self.channels_last, self.compiled = mixed, channels_last, compiled

    def build(self, network, **sizes):
        return network(self, **sizes)

    def laid_out(self, x):
        if not self.channels_last or x.ndim not in FORMATS:
            return x
        return x.contiguous(memory_format=FORMATS[x.ndim])

    def outputs(self, task):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.mixed):
            return task.forward(task.x).float()

    def training(self, task):
        """A function that takes a step and returns its loss."""
        optimizer = torch.optim.Adam(self.layers.parameters(), 1e-4, fused=True)

        def loss_of():
            return task.loss(self.outputs(task))

        loss_of = torch.compile(loss_of) if self.compiled else loss_of

        def step():
            loss = loss_of()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return float(loss.detach())

        return step

    def evaluation(self, task):
        """A function that computes the outputs and returns the first number."""
        self.layers.eval()

        def outputs():
            return self.outputs(task)

        outputs = torch.compile(outputs) if self.compiled else outputs

        def evaluate():
            with torch.inference_mode():
                return float(outputs().reshape(-1)[0])

        return evaluate

    # What a network is trained for.

    def constant(self, array):
        return torch.from_numpy(array)

    def images(self, batch, channels, size):
        return self.laid_out(super().images(batch, channels, size))

    def volumes(self, batch, channels, size):
        return self.laid_out(super().volumes(batch, channels, size))

    def classes(self, count, *shape):
        """The cross entropy of scores with random classes."""
        t = self.ids(count, *shape)
        return lambda y: F.cross_entropy(y, t)

    def targets(self, *shape):
        """The mean squared error to random numbers."""
        t = self.numbers(*shape)
        return lambda y: F.mse_loss(y, t)

    def variable(self, array):
        """One whose gradient is wanted."""
        return array.clone().requires_grad_()

    def gradient(self, y, x):
        """That of a number, which can be differentiated again."""
        return torch.autograd.grad(y, x, create_graph=True)[0]

    def detached(self, x):
        """As a constant."""
        return x.detach()

    # Layers with parameters.

    def add(self, layer, initial=None):
        """``initial`` are the weights; a layer that has them begins without a bias."""
        if initial is not None:
            weight = self.laid_out(torch.from_numpy(initial))
            layer.weight = nn.Parameter(weight)
            if getattr(layer, "bias", None) is not None:
                nn.init.zeros_(layer.bias)
        self.layers.append(layer)
        return layer

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
        sizes = channels, filters, ksize, stride, pad, dilation, groups, bias
        w = self.initial(filters, channels // groups, *extents)
        return self.add(CONVOLUTIONS[axes](*sizes), w)

    def deconv(self, channels, filters, ksize, stride, pad):
        w = self.initial(channels, filters, ksize, ksize)
        return self.add(nn.ConvTranspose2d(channels, filters, ksize, stride, pad), w)

    def linear(self, size, units, bias=True):
        """Applied to the last axis."""
        return self.add(nn.Linear(size, units, bias), self.initial(units, size))

    def embed(self, count, units):
        return self.add(nn.Embedding(count, units), self.initial(count, units))

    def batch_norm(self, channels):
        return self.add(BatchNorm(channels, 2e-5))

    def group_norm(self, groups, channels):
        return self.add(nn.GroupNorm(groups, channels))

    def layer_norm(self, units):
        """Over the last axis."""
        return self.add(nn.LayerNorm(units, 1e-6))

    def parameter(self, *shape, value=None):
        """A parameter of one value, or of random ones."""
        initial = self.initial(*shape) if value is None else np.full(shape, value, "f")
        # Weights of 5 axes become those of images by a product (stylegan).
        x = torch.from_numpy(initial)
        parameter = nn.Parameter(self.laid_out(x) if x.ndim == 4 else x)
        self.layers.append(nn.ParameterList([parameter]))
        return parameter

    # Activations and functions of each element.

    def sigmoid(self, x):
        return torch.sigmoid(x)

    def log_sigmoid(self, x):
        return F.logsigmoid(x)

    def tanh(self, x):
        return torch.tanh(x)

    def exp(self, x):
        return torch.exp(x)

    def log(self, x):
        return torch.log(x)

    def sin(self, x):
        return torch.sin(x)

    def cos(self, x):
        return torch.cos(x)

    def rsqrt(self, x):
        return torch.rsqrt(x)

    def dropout(self, x, ratio):
        return F.dropout(x, ratio, self.layers.training)

    def softmax(self, x):
        """Over the last axis."""
        return torch.softmax(x, -1)

    # Reductions and products.

    def sum(self, x, axis=None, keepdims=False):
        return x.sum() if axis is None else x.sum(axis, keepdims)

    def mean(self, x, axis=None, keepdims=False):
        return x.mean() if axis is None else x.mean(axis, keepdims)

    def max(self, x, axis):
        return x.max(axis).values

    def matmul(self, a, b):
        return a @ b

    def argmin(self, x):
        """Along the last axis, of a constant."""
        return x.argmin(-1)

    def top(self, x, count):
        """The indices of the largest along the last axis, of a constant."""
        return x.topk(count, -1).indices

    def conv_with(self, x, w, pad, groups=1):
        """A convolution of images with weights that are computed."""
        return F.conv2d(x, w, None, 1, pad, groups=groups)

    # Pooling and sizes of images.

    def max_pool(self, x, ksize, stride=None, pad=0):
        return MAX_POOLING[x.ndim](x, ksize, stride, pad)

    def average_pool(self, x, ksize, stride=None, pad=0):
        return F.avg_pool2d(x, ksize, stride, pad)

    def twice_as_large(self, x):
        """Each pixel becomes 2 along each axis."""
        return F.interpolate(x, scale_factor=2, mode="nearest")

    def resize(self, x, size):
        return F.interpolate(x, (size, size), mode="bilinear", align_corners=True)

    def depth_to_space(self, x, ratio):
        """Channels become pixels, in an order that differs between the libraries."""
        return F.pixel_shuffle(x, ratio)

    def reflect(self, x, pad):
        return F.pad(x, (pad, pad, pad, pad), "reflect")

    # Shapes and indices.

    def reshape(self, x, *shape):
        return x.reshape(shape)

    def transpose(self, x, *axes):
        return x.permute(axes)

    def broadcast(self, x, *shape):
        return x.expand(shape)

    def concat(self, xs, axis=1):
        return torch.cat(xs, axis)

    def stack(self, xs):
        return torch.stack(xs)

    def roll(self, x, shift, axes):
        """Elements move by ``shift``, and those that leave come in again."""
        return torch.roll(x, (shift,) * len(axes), axes)

    def rows(self, x, indices):
        return x.index_select(0, indices)

    def sum_into_rows(self, x, indices, count):
        """Rows of which each is the sum of those of ``x`` that have its index."""
        return x.new_zeros((count, *x.shape[1:])).index_add(0, indices, x)
