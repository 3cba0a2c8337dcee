"""Functions take what Chainer 7.8.1's take, under the same names."""

import inspect
import re

import pytest

import renga.functions as F

SIGNATURES = """
absolute(self)
accuracy(y, t, ignore_label=None)
add(*xs)
arccos(x)
arcsin(x)
arctan(x)
arctan2(x1, x2)
argmax(x, axis=None)
argmin(x, axis=None)
average(x, axis=None, weights=None, keepdims=False)
average_pooling_2d(x, ksize, stride=None, pad=0)
batch_normalization(x, gamma, beta, **kwargs)
broadcast(*args)
broadcast_to(x, shape)
cast(x, typ)
ceil(x)
clip(x, x_min, x_max)
concat(xs, axis=1)
convolution_2d(x, W, b=None, stride=1, pad=0, cover_all=False, **kwargs)
cos(x)
cosh(x)
deconvolution_2d(x, W, b=None, stride=1, pad=0, outsize=None, **kwargs)
dropout(x, ratio=0.5, **kwargs)
einsum(*operands)
elu(x, alpha=1.0)
embed_id(x, W, ignore_label=None)
exp(x)
expand_dims(x, axis)
expm1(x)
fixed_batch_normalization(x, gamma, beta, mean, var, eps=2e-05, axis=None)
flatten(x)
floor(x)
gaussian(mean, ln_var, **kwargs)
get_item(x, slices)
leaky_relu(x, slope=0.2)
linear(x, W, b=None, n_batch_axes=1)
log(x)
log10(x)
log1p(x)
log2(x)
log_softmax(x, axis=1)
logsumexp(x, axis=None)
matmul(a, b, transa=False, transb=False)
max(x, axis=None, keepdims=False)
max_pooling_2d(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False)
maximum(x1, x2)
mean(x, axis=None, weights=None, keepdims=False)
mean_squared_error(x0, x1)
min(x, axis=None, keepdims=False)
minimum(x1, x2)
pad(x, pad_width, mode, **keywords)
prod(x, axis=None, keepdims=False)
relu(x)
reshape(x, shape)
rsqrt(x)
select_item(x, t)
sigmoid(x)
sigmoid_cross_entropy(x, t, normalize=True, reduce='mean')
sign(x)
sin(x)
sinh(x)
softmax(x, axis=1)
softmax_cross_entropy(x, t, normalize=True, cache_score=True, class_weight=None, \
ignore_label=-1, reduce='mean', enable_double_backprop=False, \
soft_target_loss='cross-entropy')
softplus(x, beta=1.0)
split_axis(x, indices_or_sections, axis, force_tuple=True)
sqrt(x)
square(x)
squeeze(x, axis=None)
stack(xs, axis=0)
sum(x, axis=None, keepdims=False)
sum_to(x, shape)
swapaxes(x, axis1, axis2)
tan(x)
tanh(x)
tensordot(a, b, axes=2)
transpose(x, axes=None)
where(condition, x, y)
""".split("\n")[1:-1]

# Keywords that Chainer reads from **kwargs, with their defaults.
KEYWORDS = {
    "batch_normalization": {
        "eps": 2e-5,
        "running_mean": None,
        "running_var": None,
        "decay": 0.9,
        "axis": None,
    },
}


def parameters(function):
    """(name, default) of each parameter; the core's tell them in their docs."""
    if not inspect.isbuiltin(function):
        listed = inspect.signature(function).parameters.values()
        return [(str(p).partition("=")[0].partition(":")[0], p.default) for p in listed]
    text = re.match(r"\w+\((.*)\) ->", function.__doc__)[1]
    split = re.findall(r"(\w+): [^=]+?(?: = ([^,]+))?(?:, (?=\w+:)|$)", text)
    return [(n, eval(d) if d else inspect.Parameter.empty) for n, d in split]


@pytest.mark.parametrize("signature", SIGNATURES)
def test_names_and_defaults(signature):
    name, _, rest = signature.partition("(")
    namespace = {}
    exec(f"def {name}({rest}: pass", namespace)
    wanted = parameters(namespace[name])
    found = parameters(getattr(F, name))
    if name in KEYWORDS:
        wanted = wanted[:-1] + list(KEYWORDS[name].items())
    if name == "absolute":
        wanted = [("x", inspect.Parameter.empty)]  # Chainer's own name is a method's
    assert found == wanted
