"""A function of one's own: FunctionNode with double backprop, and an old Function."""

import chainer
import chainer.functions as F
import numpy as np
from chainer import Function, FunctionNode, Variable, gradient_check
from chainer.utils import type_check


class MulAdd(FunctionNode):

    def check_type_forward(self, in_types):
        type_check.expect(in_types.size() == 3)
        x, y, z = in_types
        type_check.expect(
            x.dtype.kind == 'f', x.dtype == y.dtype, x.shape == y.shape,
            z.shape == x.shape)

    def forward_cpu(self, inputs):
        self.retain_inputs((0, 1))
        x, y, z = inputs
        return x * y + z,

    def backward(self, target_input_indexes, grad_outputs):
        x, y = self.get_retained_inputs()
        gw, = grad_outputs
        return y * gw, x * gw, gw


def muladd(x, y, z):
    return MulAdd().apply((x, y, z))[0]


class OldSquare(Function):

    def forward(self, inputs):
        return inputs[0] ** 2,

    def backward(self, inputs, grad_outputs):
        return 2 * inputs[0] * grad_outputs[0],


np.random.seed(0)
x, y, z = (np.random.uniform(-1, 1, (3, 2)) for _ in range(3))
gw = np.random.uniform(-1, 1, (3, 2))
gradient_check.check_backward(muladd, (x, y, z), gw, dtype='d', atol=1e-5)
gradient_check.check_double_backward(
    lambda *xs: muladd(*xs) ** 2, (x, y, z), gw, (x, y, z), dtype='d',
    atol=1e-4, rtol=1e-4)

v = Variable(x)
w = F.sum(muladd(v, v, OldSquare()(v)))
w.backward()
np.testing.assert_allclose(v.grad, 4 * x)
v.cleargrad()
s = F.sum(muladd(v, v, v))
gx, = chainer.grad([s], [v], enable_double_backprop=True)
F.sum(gx).backward()
np.testing.assert_allclose(v.grad, np.full_like(x, 2))
try:
    muladd(x, y, z[:2])
except type_check.InvalidType as error:
    print('refused: {}'.format('z' in str(error) or 'in_types' in str(error)))
print(w.creator.label if w.creator else None)
