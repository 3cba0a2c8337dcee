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
F.layer_normalization(s(N, 3), s(3), s(3)) with argument 0 of e
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

DIFFERENCES["gradient_checks"] = {
    **all_of(error("ValueError"), """
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)), eps=0)
numerical(lambda x: (x**3,), points(2, 3), np.ones((2, 3)), eps=-1e-3)
numerical(lambda x: (x**3, x), points(2), np.ones(2))
numerical(lambda x: (x**3,), points(2), np.ones(2), np.ones(2))
numerical(lambda x: (x**3, None), points(2), np.ones(2), np.ones(2))
numerical(lambda x: (x**3,), points(2), np.ones(3))
numerical(lambda x: (x**3,), points(2), np.ones((2, 2)))
check_backward(lambda x: (x, None), points(2), (np.ones(2), np.ones(2)))
check_backward(lambda a: None, points(2), np.ones(2))
check_backward(F.exp, points(2), np.ones(2), eps=0)
"""),
    **all_of(error("TypeError"), """
numerical_grad(lambda: (np.ones(2),), points(2), [np.ones(2)])
"""),
    **all_of(error("AssertionError"), """
check_backward(lambda a: a.array, points(2), np.ones(2))
"""),
    **all_of(COMPUTES, """
check_backward(lambda x: (x, None), points(2), (np.ones(2), None))
check_backward(lambda x: (x, None), points(2), (np.ones(2), np.zeros(2)))
check_double_backward(lambda x: x ** 3, points(2), None, np.ones(2))
check_double_backward(lambda a, b: a * a, (points(2), points(2)), np.ones(2), (np.ones(2), None))
check_double_backward(lambda a, b: a * a, (points(2), points(2)), np.ones(2), (np.ones(2), np.ones(2)))
testing.assert_allclose(chainer.Variable(points(2)), points(2))
"""),
    # Chainer leaves a parameter in the dtype of the numerical side.
    "case_parameters_stay": value(
        {'tuple': [['float32', [2, 4], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]], ['float32', [2], [0.0, 0.0]]]}
    ),
}


def ends(forward="passes", backward="passes", double_backward=None):
    """How the tests of a case end."""
    found = {"test_forward": forward, "test_backward": backward}
    if double_backward:
        found["test_double_backward"] = double_backward
    return value(found)


DIFFERENCES["testing_functions"] = {
    "tests_of(Square, forward=lambda inputs, device: ())": ends(
        ["FunctionTestError", ["Number of outputs"]], "ValueError", "ValueError"
    ),
    "tests_of(Square, generate_grad_outputs=lambda ys: (None,))": ends(
        "passes", "passes", "passes"
    ),
    "tests_of(Embedded, generate_grad_grad_inputs=lambda xs: (None, points(2, 3)))": ends(
        "passes", "passes", "ValueError"
    ),
    "tests_of(Square, contiguous='F')": ends("ValueError", "ValueError", "ValueError"),
    **all_of(
        ends(["FunctionTestError", ["Number of outputs"]], "ValueError", "ValueError"),
        "tests_of(Square, forward_expected=lambda inputs: (inputs[0] ** 2, inputs[0]))",
    ),
    **all_of(
        ends("passes", "ValueError", "ValueError"),
        "tests_of(Square, generate_grad_outputs=lambda ys: (points(2, 3), points(2, 3)))",
    ),
}

DIFFERENCES["testing_links"] = {
    "tests_of(Linear, contiguous='F')": ends("ValueError", "ValueError"),
    # Chainer unpacks an InitializerArgument in one of the two tests only.
    **all_of(ends(), """
tests_of(Linear, generate_params=lambda: (testing.InitializerArgument(points(2, 3), .5), 0))
tests_of(Linear, generate_params=lambda: (testing.InitializerArgument(None, 0), 0))
"""),
    "tests_of(Linear, forward_expected=lambda link, inputs: inputs[0].dot(link.W.array.T))": ends(
        "TypeError"
    ),
    "case_nested_parameters": value("passes"),
}

DIFFERENCES["creators"] = {
    "case_creators_of_leaves": value({'tuple': [None, None, None]}),
    "case_another_creator": error("TypeError"),
    **all_of(value([]), """
F.accuracy(s(N, 3), i(3, N))
F.argmax(s(N, 3), axis=1)
F.argmax(s(N, 3), axis=0)
F.argmax(s(N, 3))
F.argmin(s(N, 3), axis=1)
F.argmin(s(N, 3))
F.binary_accuracy(s(N, 3), i(2, N, 3))
F.classification_summary(s(N, 3), i(3, N))
F.f1_score(s(N, 3), i(3, N))
F.precision(s(N, 3), i(3, N))
F.r2_score(s(N, 3), s(N, 3))
F.recall(s(N, 3), i(3, N))
"""),
    "F.selu(s(N, 3))": value([{'tuple': ['SELU', 'SELU']}]),
    **all_of(value([{'tuple': ['Add', '_ + _']}]), """
F.add(s(N, 3), s(N, 3), s(N, 3))
"""),
    "F.bernoulli_nll(u(N, 3), s(N, 3), reduce='no')": value([{'tuple': ['BernoulliNLL', 'BernoulliNLL']}]),
    **all_of(value([{'tuple': ['Sum', 'Sum']}]), """
F.argmax_crf1d(s(3, 3), [s(N, 3), s(N, 3)])
"""),
    **all_of(value([{'tuple': ['Concat', 'Concat']}]), """
F.crf1d(s(3, 3), [s(N, 3), s(N, 3)], [i(3, N), i(3, N)], reduce='no')
"""),
    **all_of(value([{'tuple': ['Mean', 'Mean']}]), """
F.average(s(N, 3), axis=0, weights=u(N))
"""),
    **all_of(value([{'tuple': ['MulConstant', '_ * _']}]), """
F.black_out(s(N, 3), i(4, N), s(4, 3), i(4, N, 2))
F.crf1d(s(3, 3), [s(N, 3), s(N, 3)], [i(3, N), i(3, N)])
F.gaussian_kl_divergence(s(N, 3), s(N, 3), reduce='no')
F.gaussian_nll(s(N, 3), s(N, 3), s(N, 3), reduce='no')
"""),
    **all_of(value([{'tuple': ['Broadcast', 'Broadcast']}, {'tuple': ['Broadcast', 'Broadcast']}]), """
F.broadcast(s(N, 3), s(3), s(N, 1))
"""),
    **all_of(value([{'tuple': ['BatchDet', 'det']}]), """
F.det(s(N, N))
"""),
    **all_of(value([{'tuple': ['MulConstant', '_ * _']}, {'tuple': ['MulConstant', '_ * _']}, {'tuple': ['MulConstant', '_ * _']}]), """
F.discriminative_margin_based_clustering_loss(s(N, 2, 4, 4), i(3, N, 4, 4), .5, 1.5, 2)
"""),
    **all_of(value([{'tuple': ['LinearFunction', 'LinearFunction']}]), """
F.linear(s(2, N, 3), s(4, 3), s(4), n_batch_axes=2)
"""),
    **all_of(value([{'tuple': ['Concat', 'Concat']}, {'tuple': ['SplitAxis', 'SplitAxis']}, {'tuple': ['SplitAxis', 'SplitAxis']}]), """
F.n_step_bigru(1, 0., s(2, N, 3), [[s(3, 2) for _ in range(3)] + [s(3, 3) for _ in range(3)]] * 2, [[s(3)] * 6] * 2, [s(N, 2), s(N, 2)])
F.n_step_birnn(1, 0., s(2, N, 3), [[s(3, 2), s(3, 3)]] * 2, [[s(3), s(3)]] * 2, [s(N, 2), s(N, 2)])
F.n_step_gru(1, 0., s(1, N, 3), [[s(3, 2) for _ in range(3)] + [s(3, 3) for _ in range(3)]], [[s(3)] * 6], [s(N, 2), s(N, 2)])
F.n_step_rnn(1, 0., s(1, N, 3), [[s(3, 2), s(3, 3)]], [[s(3), s(3)]], [s(N, 2), s(N, 2)])
F.n_step_rnn(1, 0., s(1, N, 3), [[s(3, 2), s(3, 3)]], [[s(3), s(3)]], [s(N, 2), s(N, 2)], activation='relu')
"""),
    **all_of(value([{'tuple': ['Concat', 'Concat']}, {'tuple': ['Concat', 'Concat']}, {'tuple': ['SplitAxis', 'SplitAxis']}, {'tuple': ['SplitAxis', 'SplitAxis']}]), """
F.n_step_bilstm(1, 0., s(2, N, 3), s(2, N, 3), [[s(3, 2) for _ in range(4)] + [s(3, 3) for _ in range(4)]] * 2, [[s(3)] * 8] * 2, [s(N, 2), s(N, 2)])
F.n_step_lstm(1, 0., s(1, N, 3), s(1, N, 3), [[s(3, 2) for _ in range(4)] + [s(3, 3) for _ in range(4)]], [[s(3)] * 8], [s(N, 2), s(N, 2)])
F.n_step_lstm(1, 0., s(1, 2, 3), s(1, 2, 3), [[s(3, 2) for _ in range(4)] + [s(3, 3) for _ in range(4)]], [[s(3)] * 8], [s(2, 2), s(N, 2)])
"""),
    **all_of(value([{'tuple': ['DivFromConstant', 'rsqrt']}]), """
F.rsqrt(u(N, 3))
"""),
    **all_of(value([{'tuple': ['PowVarConst', '_ ** _']}]), """
u(N, 3) ** 2.5
2 ** s(N, 3)
"""),
    **all_of(value([{'tuple': ['SubFromConstant', '_ - _']}]), """
3 - s(N, 3)
"""),
    **all_of(value([{'tuple': ['DivFromConstant', '_ / _']}]), """
2 / u(N, 3)
"""),
    **all_of(value([{'tuple': ['Reshape', 'Reshape']}]), """
s(N, 3)[:, 1]
"""),
}

# Entries that are missing and may be, of JSON and of averages, where Chainer fails; and
# an entry more of iterators without an order, by which other ranks go on.
DIFFERENCES["old_snapshots"] = {
    **all_of(value({'tuple': [{'current_position': 3, 'dataset_size': 5, 'epoch': 1, 'is_new_epoch': False, 'previous_epoch_detail': 1.2}, []]}), """
SerialIterator without nothing, True
SerialIterator without nothing, False
SerialIterator without is_new_epoch, False
SerialIterator without previous_epoch_detail, True
"""),
    **all_of(value({'tuple': [{'current_position': 0, 'dataset_size': 5, 'epoch': 1, 'is_new_epoch': False, 'previous_epoch_detail': 1.2}, []]}), """
SerialIterator without current_position, False
"""),
    **all_of(value({'tuple': [{'current_position': 3, 'dataset_size': 5, 'epoch': 0, 'is_new_epoch': False, 'previous_epoch_detail': 1.2}, []]}), """
SerialIterator without epoch, False
"""),
    **all_of(value({'tuple': [{'current_position': 3, 'dataset_size': 5, 'epoch': 1, 'is_new_epoch': False, 'previous_epoch_detail': -1.0}, []]}), """
SerialIterator without previous_epoch_detail, False
"""),
    **all_of(value({'tuple': [{'current_position': 0, 'dataset_size': 5, 'epoch': 0, 'is_new_epoch': False, 'previous_epoch_detail': -1.0}, []]}), """
SerialIterator without all, False
"""),
    "case_decorrelated_of_another_size": value({'tuple': [{'tuple': ['ValueError', []]}, ['Variable', 'float32', [3, 4], [0.0, 0.7, 1.4, 2.1, 2.8, 0.5, 1.2, 1.9, 2.6, 0.3, 1.0, 1.7]]]}),
    **all_of(value({'tuple': [{'tuple': [{'best_value': None, 'interval_trigger/previous_epoch_detail': 0.0, 'interval_trigger/previous_iteration': 0, 'summary/_names': '[]'}, []]}, [6, 8, 10, 12, 14]]}), """
minimum without all, False, every 1
minimum without all, False, every 2
"""),
    **all_of(value({'tuple': [{'tuple': [{'best_value': None, 'interval_trigger/previous_epoch_detail': 0.0, 'interval_trigger/previous_iteration': 0, 'summary/_names': '[]'}, []]}, [6]]}), """
maximum without all, False, every 1
maximum without all, False, every 2
"""),
    **all_of(value({'tuple': [{'_names': '[]'}, []]}), """
DictSummary without _names, False
DictSummary without all, False
"""),
    **all_of(value({'tuple': [{'_log': '[]', '_summary/_names': '["loss", "n"]', '_summary/_summaries/0/_n': 1.0, '_summary/_summaries/0/_x': 0.5, '_summary/_summaries/0/_x2': 0.25, '_summary/_summaries/1/_n': 1.0, '_summary/_summaries/1/_x': 2.0, '_summary/_summaries/1/_x2': 4.0, '_trigger/previous_epoch_detail': 1.25, '_trigger/previous_iteration': 5}, []]}), """
LogReport without _log, False
"""),
    **all_of(value({'tuple': [{'_log': '[{"loss": 0.5, "n": 2.0, "epoch": 0, "iteration": 2, "elapsed_time": 20.0}, {"loss": 0.5, "n": 2.0, "epoch": 1, "iteration": 4, "elapsed_time": 40.0}]', '_summary/_names': '[]', '_trigger/previous_epoch_detail': 1.25, '_trigger/previous_iteration': 5}, []]}), """
LogReport without _summary/_names, False
"""),
    **all_of(value({'tuple': [{'_log': '[]', '_summary/_names': '[]', '_trigger/previous_epoch_detail': 0.0, '_trigger/previous_iteration': 0}, []]}), """
LogReport without all, False
"""),
    **all_of(value({'tuple': [{'N': 0, 'avg_mean': [[0.0, 0.0], [0.0, 0.0]], 'avg_projection': [[[0.950359, 0.00541389], [0.00541389, 0.934355]], [[2.03535, -0.541087], [-0.541087, 1.25555]]]}, []]}), """
DecorrelatedBatchNormalization without avg_mean, False
"""),
    **all_of(value({'tuple': [{'N': 0, 'avg_mean': [[0.4375, 0.351], [0.07, 0.217]], 'avg_projection': [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]}, []]}), """
DecorrelatedBatchNormalization without avg_projection, False
"""),
    **all_of(value({'tuple': [{'N': 0, 'avg_mean': [[0.0, 0.0], [0.0, 0.0]], 'avg_projection': [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]}, []]}), """
DecorrelatedBatchNormalization without all, False
"""),
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

DIFFERENCES["graphs"] = {
    "case_array_of_another_type": error("TypeError"),
    "case_backward_of_no_gradient_mode": value(
        {'tuple': [None, False]}
    ),
}

DIFFERENCES["core"] = {
    **all_of(COMPUTES, """
backward_of(Scale((ones(2),)), ones(2))
chainer.grad([F.sum(V(ones(2)))], [])
V(ones(2)).addgrad(P(None))
P(None).addgrad(P(None))
P(1, (2,)).addgrad(P(None))
P(None).grad
P(1.).grad
linear(2, 1).addgrads(linear(None, 1))
F.einsum('ij,jk->ik', V(ones(2, 3, dtype='i')), V(ones(3, 2, dtype='i')))
"""),
    **all_of(error("ValueError"), """
chainer.grad([F.sum(V(ones(2)))], [V(ones(2))], [V(ones(1))])
V(ones(2), grad=ones(3))
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
chainer.grad([F.sum(V(ones(2)))], [ones(2)])
linear(2, 1)(3)
V(ones(2), grad=ones(2, dtype='d'))
V(ones(2), volatile=True)
optimizers.SGD(lr='text')
optimizers.SGD().add_hook(3)
optimizers.SGD(None).lr
AdaDelta(None)
"""),
    "P(None).dtype": value(
        'float32'
    ),
    "np.add(ones(2), V(ones(2)))": value(
        ['Variable', 'float32', [2], [2.0, 2.0]]
    ),
}

DIFFERENCES["trainers"] = {
    "case_trainer_entries": value(
        ['_snapshot_elapsed_time',
         'extension_triggers/LogReport/previous_epoch_detail',
         'extension_triggers/LogReport/previous_iteration',
         'extension_triggers/_Snapshot/previous_epoch_detail',
         'extension_triggers/_Snapshot/previous_iteration',
         'extensions/LogReport/_log',
         'extensions/LogReport/_summary/_names',
         'extensions/LogReport/_trigger/previous_epoch_detail',
         'extensions/LogReport/_trigger/previous_iteration',
         'observation',
         'stop_trigger/previous_epoch_detail',
         'stop_trigger/previous_iteration',
         'updater/iteration']
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
    "D.Normal(p([0.], [1.]), p(1., 2.)).mean": value(
        ['Variable', 'float32', [2, 2], [0.0, 0.0, 1.0, 1.0]]
    ),
    "D.Normal(p([0.], [1.]), p(1., 2.)).variance": value(
        ['Variable', 'float32', [2, 2], [1.0, 4.0, 1.0, 4.0]]
    ),
    "D.Normal(p([0.], [1.]), p(1., 2.)).entropy": value(
        ['Variable', 'float32', [2, 2], [1.41894, 2.11209, 1.41894, 2.11209]]
    ),
    "D.Laplace(p([0.], [1.]), p(1., 2.)).entropy": value(
        ['Variable', 'float32', [2, 2], [1.69315, 2.38629, 1.69315, 2.38629]]
    ),
    "D.Gumbel(p([0.], [1.]), p(1., 2.)).entropy": value(
        ['Variable', 'float32', [2, 2], [1.57722, 2.27036, 1.57722, 2.27036]]
    ),
    "D.Cauchy(p([0.], [1.]), p(1., 2.)).entropy": value(
        ['Variable', 'float32', [2, 2], [2.53102, 3.22417, 2.53102, 3.22417]]
    ),
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

DIFFERENCES["corners"] = {
    **all_of(COMPUTES, """
chainer.grad([V(x(1))], [])
D.Bernoulli(logit=np.array([0.], 'f')).log_prob(np.array([2.], 'f'))
"""),
    **all_of(error("RuntimeError"), """
optimizers.SGD().update(lambda: V(x(2)))
"""),
    # Nothing gets a gradient, which renga says of leaves, too.
    "warned(lambda: V(x(2)).backward())": value(["UserWarning"]),
}

DIFFERENCES["dtypes"] = {
    **{
        f"F.softmax(V(x)[None]) of {dtype}": error("InvalidType")
        for dtype in ("H", "I", "L", "O", "S", "F")
    },
    **{
        f"F.select_item(np.ones((3, 5), 'f'), V(x)) of {dtype}": COMPUTES
        for dtype in "HIL"
    },
}

# The calls of every dtype but int32, int64, float32 and float64.
OF_DTYPES = {
    f"collectives: {call}": COMPUTES
    for dtype in "?bBhHILgF"
    for call in (
        f"comm.allreduce(ones(2, dtype='{dtype}'))",
        f"comm.allgather(ones(2, dtype='{dtype}'))",
        f"comm.gather(ones(2, dtype='{dtype}'))",
        f"comm.alltoall([ones(2, dtype='{dtype}')] * size)",
    )
    if (dtype, call[5:14]) != ("g", "allreduce")
}

# The outcomes of every rank, however many there are.
DIFFERENCES["ranks"] = {
    **OF_DTYPES,
    **all_of(
        COMPUTES,
        """
collectives: comm.allreduce(2.5)
collectives: comm.allreduce([1, 2])
collectives: comm.allreduce([x(2), x(3)])
collectives: comm.allreduce((x(2), x(2)))
collectives: comm.allreduce(chainer.Variable(x(2)))
collectives: comm.allgather((x(2), x(2)))
collectives: comm.allgather(3)
collectives: comm.gather('text')
collectives: comm.alltoall([x() + i for i in range(size)])
collectives: comm.alltoall([x(2)] * (size - 1) + [x(2, dtype='d')])
collectives: comm.alltoall([x(2)] * (size - 1) + [3])
data: iterated(comm, [1., 2., 3., 4.], 2)
data: iterated(comm, [1., 2., 3.], 2)
data: iterated(comm, [1., 2., 3.], 2, repeat=True)
data: iterated(comm, [(1., 2), (3., 4), (5., 6)], 2)
data: iterated(comm, [1., 2., 3., 4.], 2, rank_master=last)
data: iterated(comm, ['a', 'b'], 1)
data: case_checkpoint_without_a_name
links: normalized(comm, BN((2, 3), comm), shape=(4, 2, 3))
messages: comm.send([1], 0, 0)
messages: comm.send(x('?'), 0, 0)
messages: comm.send([x('f'), x('d')], 0, 0)
messages: comm.send(chainer.Variable(x('f')), 0, 0)
messages: comm.send('text', 0, 0)
""",
    ),
    **all_of(
        error("TypeError"),
        """
collectives: comm.allreduce('text')
functions: CF.allgather(comm, None)
""",
    ),
    **all_of(
        error("InvalidType"),
        """
collectives: comm.allreduce([x(2), x(2, dtype='d')])
""",
    ),
    **all_of(
        error("ValueError"),
        """
collectives: case_configuration_with_unknown_keywords
data: case_snapshot_of_a_rank_that_does_not_exist
data: case_snapshot_of_sets_that_overlap
""",
    ),
    "collectives: case_all_of_the_configuration": value(
        {
            "allreduce_grad_dtype": None,
            "batched_copy": False,
            "all_reduce_algorithm": None,
        }
    ),
    "links: case_first_statistics": value(
        {"tuple": [["float32", [2], [0.0, 0.0]], ["float32", [2], [1.0, 1.0]], 0]}
    ),
    "training: evaluated(comm, total=5)['main/mean']": value(6.0),
}
