# ruff: noqa: E501
"""Where renga differs from Chainer on purpose: its outcome, by file and case."""

# There is a value, whatever it is, where Chainer has an error.
COMPUTES = {"value": ...}


def error(name):
    return {"error": [name]}


def value(value):
    return {"value": value}


def all_of(outcome, cases):
    """The same outcome of several cases, one a line."""
    return {case: outcome for case in cases.strip().split("\n")}


DIFFERENCES = {}

DIFFERENCES["mixed_dtypes"] = {
    **all_of(COMPUTES, """
F.deformable_convolution_2d_sampler(s(N, 3, 5, 5), u(N, 18, 3, 3), s(4, 3, 3, 3), s(4)) with argument 2 of d
F.dropout(s(N, 3), mask=2 * i(2, N, 3).astype(DTYPE)) with argument 0 of i
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 0 of e
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 0 of d
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 1 of e
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 1 of d
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 1 of i
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 2 of e
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 2 of d
F.fixed_decorrelated_batch_normalization(s(N, 4), s(2, 2), s(2, 2, 2), groups=2) with argument 2 of i
F.fliplr(s(N, 3)) with argument 0 of i
F.flipud(s(N, 3)) with argument 0 of i
F.im2col(s(N, 3, 5, 5), 3) with argument 0 of i
F.moveaxis(s(N, 3, 2), 0, 2) with argument 0 of i
F.pad(s(N, 3), ((1, 0), (0, 2)), 'constant', constant_values=3.) with argument 0 of i
F.sparse_matmul(coo(s(N).array, numpy.arange(N, dtype='i'), i(3, N), (N, 3)), s(3, 2)) with argument 0 of i
u(N, 3) ** 2.5 with argument 0 of i
2 / u(N, 3) with argument 0 of i
"""),
    **all_of(error("InvalidType"), """
F.gumbel_softmax(s(N, 3)) with argument 0 of i
F.log_softmax(s(N, 3)) with argument 0 of i
F.softmax(s(N, 3)) with argument 0 of i
F.softmax(s(3, N), axis=1) with argument 0 of i
F.softmax_cross_entropy(s(N, 3), i(3, N)) with argument 0 of i
F.softmax_cross_entropy(s(N, 3, 2), i(3, N, 2)) with argument 0 of i
F.softmax_cross_entropy(s(N, 3), i(3, N), normalize=False) with argument 0 of i
F.softmax_cross_entropy(s(N, 3), i(3, N), class_weight=numpy.array([1, 2, 3], DTYPE)) with argument 0 of i
F.softmax_cross_entropy(s(N, 3), i(3, N), reduce='no') with argument 0 of i
F.softmax_cross_entropy(s(N, 3), numpy.full((N, 3), 1 / 3, DTYPE)) with argument 0 of i
F.sum_to(s(N, 3), (1, 3)) with argument 0 of i
F.sum_to(s(N, 3), (N, 1)) with argument 0 of i
"""),
    **all_of(error("ValueError"), """
u(N, 3) ** s(N, 3) with argument 1 of i
2 ** s(N, 3) with argument 0 of i
"""),
    "F.batch_renormalization(s(N, 3), s(3), s(3), 2., 1., running_mean=numpy.zeros(3, DTYPE), running_var=numpy.ones(3, DTYPE)) with argument 0 of d": value(
        {'tuple': [[['float64', [2, 3], -0.508259, 8.47653]], [[[2, 3], 0.00016, 0.000536], [[3], -0.4915, 4.01424], [[3], 7.26412, 6.08808]]]}
    ),
}

DIFFERENCES["losses"] = {
    **all_of(error("ValueError"), """
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), class_weight=[1, 2, 3])
"""),
    **all_of(error("InvalidType"), """
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), class_weight=np.ones(2, 'f'))
F.softmax_cross_entropy(scores(2, 3), chances(2, 4))
F.softmax_cross_entropy(scores(2, 3), labels(2, 2, dtype='?'))
F.softmax_cross_entropy(scores(2, 3), labels(3, 3))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2, 1))
F.softmax_cross_entropy(scores(2, 3, 1), labels(3, 2))
F.softmax_cross_entropy(scores(6), labels(3, 6))
F.accuracy(scores(4), labels(3, 4))
F.softmax(scores(2, 3), axis=2)
F.softmax(scores(2, 3), axis=-3)
"""),
    **all_of(COMPUTES, """
F.softmax_cross_entropy(scores(2, 3), labels(3, 2, dtype='B'))
F.embed_id(labels(3, 2, dtype='B'), scores(3, 2))
twice(lambda x: F.softmax_cross_entropy(x, chances(2, 3)), scores(2, 3))
F.accuracy(scores(4, 3), labels(3, 4, dtype='B'))
"""),
}

DIFFERENCES["training"] = {
    **all_of(error("ValueError"), """
triggers.TimeTrigger(0)
triggers.EarlyStoppingTrigger(mode='median')
"""),
    "case_summary_of_arrays": value(
        {'tuple': [['float64', [2], [0.5, 0.5]], ['float64', [2], [0.5, 0.5]]]}
    ),
    "early stopping, resumed at 4": value(
        [5, 6, 7, 10, 11, 12]
    ),
    "early stopping, resumed at 5": value(
        [5, 6, 7, 10, 11, 12]
    ),
    "early stopping max, resumed at 2": value(
        [4, 5, 6, 7, 8, 9, 10, 11]
    ),
    "early stopping max, resumed at 4": value(
        [4, 5, 6, 7, 8, 9, 10, 11]
    ),
    "early stopping max, resumed at 5": value(
        [4, 5, 6, 7, 8, 9, 10, 11]
    ),
    "early stopping patients, resumed at 4": value(
        [5, 6, 7, 10, 11, 12]
    ),
    "early stopping patients, resumed at 5": value(
        [5, 6, 7, 10, 11, 12]
    ),
}

DIFFERENCES["function_classes"] = {
    "case_hooks_see_classes": value(
        ['reshape', 'sin', 'sin']
    ),
}

DIFFERENCES["modules"] = {
    "chainer.testing.parameterized": value(
        {'parameterize': 'class', 'from_pytest_parameterize': 'function', 'parameterize_pytest': 'class', 'product': 'function', 'product_dict': 'function'}
    ),
    "chainer.types": value(
        {'Shape': 'function', 'ShapeSpec': 'function', 'DTypeSpec': 'class', 'NdArray': 'class', 'Xp': 'class', 'AbstractInitializer': 'function', 'ScalarValue': 'function', 'InitializerSpec': 'function', 'DeviceSpec': 'function', 'CudaDeviceSpec': 'class'}
    ),
}

DIFFERENCES["tabular"] = {
    **all_of(COMPUTES, """
everything(tabular.from_data((('a', 'b'), (np.arange(3), np.arange(3)))))
"""),
    **all_of(error("ValueError"), """
everything(tabular.from_data(((('a', 'b'), (np.arange(3), [1, 2, 3])), [4, 5, 6])))
"""),
    **all_of(error("TypeError"), """
tabular.from_data(5)
"""),
    "everything(Letters().transform(('x', 'x'), lambda a, b, c: (a, b)))": value(
        {'tuple': [[6, {'tuple': ['x', 'x']}, "<class 'tuple'>", {'tuple': [[10.0, 11.0, 12.0, 13.0, 14.0, 15.0], [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]]}, {'tuple': [10.0, 10.0]}], None]}
    ),
}

DIFFERENCES["core"] = {
    **all_of(COMPUTES, """
backward_of(Scale((ones(2),)), ones(2))
chainer.grad([F.sum(V(ones(2)))], [ones(2)])
chainer.grad([F.sum(V(ones(2)))], [])
V(ones(2)).addgrad(P(None))
P(1, (2,)).addgrad(P(None))
P(None).grad
P(1.).grad
linear(2, 1).addgrads(linear(None, 1))
F.einsum('ij,jk->ik', V(ones(2, 3, dtype='i')), V(ones(3, 2, dtype='i')))
"""),
    **all_of(error("ValueError"), """
chainer.grad([F.sum(V(ones(2)))], [V(ones(2))], [V(ones(1))])
V(ones(2), grad=ones(3))
chainer.Sequential(linear(2, 1), lambda x: x).copy()
"""),
    **all_of(error("RuntimeError"), """
V(None).shape
V(None).size
P(None).shape
P(None).ndim
P(None).size
len(P(None))
optimizers.SGD().update()
L.Convolution2D(3, 2).W.shape
"""),
    **all_of(error("TypeError"), """
V(ones(2), grad=ones(2, dtype='d'))
V(ones(2), volatile=True)
np.add(ones(2), V(ones(2)))
optimizers.SGD(lr='text')
optimizers.SGD().add_hook(3)
optimizers.SGD(None).lr
case_array_of_another_type
AdaDelta(None)
"""),
    "P(None).dtype": value(
        'float32'
    ),
    "chainer.using_config('unknown', 1).__class__.__name__": value(
        '_GeneratorContextManager'
    ),
    "case_backward_of_no_gradient_mode": value(
        {'tuple': [None, False]}
    ),
    "case_timer_hook": value(
        {'tuple': [1, ['exp']]}
    ),
}

DIFFERENCES["distributions"] = {
    **all_of(COMPUTES, """
D.Bernoulli(p=p(.5)).log_prob(p(2, dtype='i'))
chainer.cross_entropy(D.Normal(p(0.), p(1.)), D.Normal(p(1.), p(2.)))
Bernoulli d prob
Bernoulli e prob
MultivariateNormal d log_prob
MultivariateNormal d kl
"""),
    **all_of(error("InvalidType"), """
F.gumbel_softmax(p(.2, .8)).shape
F.gumbel_softmax(p([.2, .8]), axis=2)
"""),
    "D.Bernoulli(logit=p(100., -100.)).log_prob(p(1, 1, dtype='i'))": value(
        ['Variable', 'float32', [2], [-0.0, -100.0]]
    ),
    "D.LogNormal(mu=p(0.), sigma=p(1.)).log_prob(p(-1., 0.))": value(
        ['Variable', 'float32', [2], ['-inf', '-inf']]
    ),
    "Categorical f kl": value(
        ['Variable', 'float32', [3], [0.0, 0.0, 0.0]]
    ),
    "Categorical d kl": value(
        ['Variable', 'float64', [3], [0.0, 0.0, 0.0]]
    ),
    "Categorical e kl": value(
        ['Variable', 'float16', [3], [0.0, 0.0, 0.0]]
    ),
}

DIFFERENCES["links"] = {
    **all_of(error("ValueError"), """
L.Bilinear(2, 3, 2, initialW=x(3, 3, 2))
"""),
    **all_of(COMPUTES, """
run(L.Deconvolution2D(2, 3, 2), x(1, 2, 2, 2))
run(L.Deconvolution2D(None, 3, 2), x(1, 2, 2, 2))
run(L.Deconvolution2D(2, 3, 3, stride=2, outsize=(5, 5)), x(1, 2, 2, 2))
run(L.Deconvolution2D(2, 3, 3, stride=2, outsize=(6, 6)), x(1, 2, 2, 2))
case_old_dict_summary
"""),
    "run(L.Parameter(x(2, 3)))": value(
        {'tuple': [['Parameter', 'float32', [2, 3], [0.472, -1.056, 1.416, -0.112, -1.64, 0.832]], {'/W': {'tuple': [{'tuple': [2, 3]}, 11.056]}}, ['W']]}
    ),
    "case_old_summary": value(
        {'tuple': [{'_n': ['float64', [], [1.0]], '_x': ['float64', [], [1.0]], '_x2': ['float64', [], [1.0]]}, []]}
    ),
    "case_dict_summary_entries": value(
        {'_names': '["a", "b"]', '_summaries/0/_n': '1.0', '_summaries/0/_x': '1.0', '_summaries/0/_x2': '1.0', '_summaries/1/_n': '1.0', '_summaries/1/_x': '2.0', '_summaries/1/_x2': '4.0'}
    ),
}
