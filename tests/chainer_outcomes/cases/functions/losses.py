"""Losses and scores: options, dtypes, labels of fewer axes, labels out of range."""

import itertools

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

V = chainer.Variable


def scores(*shape, dtype="f"):
    """Numbers between -2 and 2, no two alike."""
    size = int(np.prod(shape))
    return (4 * (np.arange(1, size + 1) * 0.618 % 1) - 2).reshape(shape).astype(dtype)


def labels(classes, *shape, dtype="i"):
    size = int(np.prod(shape))
    return (np.arange(size) * 7 % classes).reshape(shape).astype(dtype)


def chances(*shape, dtype="f"):
    x = np.exp(scores(*shape))
    return (x / x.sum(1, keepdims=True)).astype(dtype)


def with_gradient(loss, *xs):
    """The loss, and its gradients."""
    xs = [V(x) for x in xs]
    y = loss(*xs)
    y.grad = np.ones_like(y.array)
    y.backward()
    return y, [x.grad for x in xs]


def labelled(shape, dtype, **options):
    t = labels(shape[1], shape[0], *shape[2:])
    t.ravel()[1] = -1
    x = scores(*shape, dtype=dtype)
    return with_gradient(lambda x: F.softmax_cross_entropy(x, t, **options), x)


def soft(shape, dtype, **options):
    t = chances(*shape, dtype=dtype)
    x = scores(*shape, dtype=dtype)
    return with_gradient(lambda x: F.softmax_cross_entropy(x, t, **options), x)


def debug(run):
    with chainer.using_config("debug", True):
        return run()


def twice(loss, *xs):
    """The gradient of the gradient's squares."""
    xs = [V(x) for x in xs]
    gxs = chainer.grad([F.sum(loss(*xs))], xs, enable_double_backprop=True)
    sum(F.sum(gx * gx) for gx in gxs).backward()
    return [x.grad for x in xs]


def called(function, **options):
    text = ", ".join(f"{key}={value!r}" for key, value in options.items())
    return f"{function}({text})"


def generated():
    found = {}
    for shape, dtype, reduce, normalize, weighted in itertools.product(
        [(4, 3), (2, 3, 2), (2, 3, 2, 2)], "efd", ["mean", "no"], [True, False], [0, 1]
    ):
        options = {"reduce": reduce, "normalize": normalize}
        weight = np.arange(1, 4).astype(dtype) if weighted else None
        name = called(f"{shape} {dtype} weighted={weighted}", **options)

        def run(f, shape=shape, dtype=dtype, options=options, weight=weight, **more):
            return lambda: f(shape, dtype, class_weight=weight, **options, **more)

        found["labels " + name] = run(labelled)
        if len(shape) < 4:
            found["soft " + name] = run(soft)
            found["divergence " + name] = run(soft, soft_target_loss="kl-divergence")
    for name, reduce in itertools.product(
        [
            "absolute_error",
            "squared_error",
            "mean_absolute_error",
            "mean_squared_error",
        ],
        ["", "d"],
    ):
        dtype = reduce or "f"
        found[f"{name} {dtype}"] = lambda f=getattr(F, name), dtype=dtype: (
            with_gradient(f, scores(3, 2, dtype=dtype), chances(3, 2, dtype=dtype))
        )
    for norm, reduce, dtype in itertools.product(
        ["L1", "L2", "L3"], ["mean", "no", "sum"], "ef"
    ):
        found[f"hinge {norm} {reduce} {dtype}"] = (
            lambda norm=norm, reduce=reduce, dtype=dtype: with_gradient(
                lambda x: F.hinge(x, labels(3, 4), norm, reduce),
                scores(4, 3, dtype=dtype),
            )
        )
    for reduce, normalize, dtype in itertools.product(
        ["mean", "no", "sum"], [True, False], "ef"
    ):
        found[f"sigmoid_cross_entropy {reduce} {normalize} {dtype}"] = (
            lambda r=reduce, n=normalize, dtype=dtype: with_gradient(
                lambda x: F.sigmoid_cross_entropy(x, labels(3, 4, 3) - 1, n, r),
                scores(4, 3, dtype=dtype),
            )
        )
    for reduce in ["mean", "no", "sum"]:
        found[f"gaussian_nll {reduce}"] = lambda r=reduce: with_gradient(
            lambda *xs: F.gaussian_nll(*xs, reduce=r), *(scores(2, 3) for _ in range(3))
        )
        found[f"bernoulli_nll {reduce}"] = lambda r=reduce: with_gradient(
            lambda *xs: F.bernoulli_nll(*xs, reduce=r), chances(2, 3), scores(2, 3)
        )
        found[f"gaussian_kl_divergence {reduce}"] = lambda r=reduce: with_gradient(
            lambda *xs: F.gaussian_kl_divergence(*xs, reduce=r),
            chances(2, 3),
            scores(2, 3),
        )
        found[f"contrastive {reduce}"] = lambda r=reduce: with_gradient(
            lambda a, b: F.contrastive(a, b, labels(2, 3), reduce=r),
            scores(3, 2),
            chances(3, 2),
        )
        found[f"triplet {reduce}"] = lambda r=reduce: with_gradient(
            lambda *xs: F.triplet(*xs, reduce=r),
            scores(3, 2),
            chances(3, 2),
            scores(3, 2),
        )
        found[f"huber_loss {reduce}"] = lambda r=reduce: with_gradient(
            lambda *xs: F.huber_loss(*xs, delta=0.5, reduce=r),
            scores(3, 2),
            chances(3, 2),
        )
        found[f"cross_covariance {reduce}"] = lambda r=reduce: with_gradient(
            lambda *xs: F.cross_covariance(*xs, reduce=r), scores(3, 2), chances(3, 2)
        )
        found[f"decov {reduce}"] = lambda r=reduce: with_gradient(
            lambda x: F.decov(x, reduce=r), scores(3, 2)
        )
        found[f"crf1d {reduce}"] = lambda r=reduce: F.crf1d(
            scores(3, 3), [scores(2, 3), scores(2, 3)], list(labels(3, 2, 2)), reduce=r
        )
        found[f"ctc {reduce}"] = lambda r=reduce: (
            F.connectionist_temporal_classification(
                [scores(2, 3), scores(2, 3)], labels(2, 2, 1) + 1, 0, reduce=r
            )
        )
    return found


GENERATED = generated()

EXPRESSIONS = """
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), class_weight=None)
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), class_weight=[1, 2, 3])
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), class_weight=np.ones((1, 3), 'f'))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), class_weight=np.ones(3, 'i'))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), class_weight=np.ones(3, 'd'))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), class_weight=np.ones(2, 'f'))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), class_weight=V(np.ones(3, 'f')))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), reduce='sum')
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), soft_target_loss='unknown')
F.softmax_cross_entropy(scores(2, 3), chances(2, 3), soft_target_loss='unknown')
F.softmax_cross_entropy(scores(2, 3), chances(2, 3), reduce='sum')
F.softmax_cross_entropy(scores(2, 3), chances(2, 4))
F.softmax_cross_entropy(scores(2, 3), chances(2, 3), normalize=False)
F.softmax_cross_entropy(scores(2, 3, 2), chances(2, 3, 2), normalize=False)
F.softmax_cross_entropy(scores(2, 3, 2), chances(2, 3, 2), ignore_label=0)
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), ignore_label=0)
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), ignore_label=None)
F.softmax_cross_entropy(scores(2, 3), np.full(2, -1, 'i'))
F.softmax_cross_entropy(scores(2, 3), np.full(2, -1, 'i'), reduce='no')
F.softmax_cross_entropy(scores(2, 3), np.full(2, -1, 'i'), normalize=False)
F.softmax_cross_entropy(scores(2, 3), labels(3, 2, dtype='q'))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2, dtype='b'))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2, dtype='h'))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2, dtype='B'))
F.softmax_cross_entropy(scores(2, 3), labels(2, 2, dtype='?'))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), cache_score=False)
F.softmax_cross_entropy(scores(2, 3), labels(3, 2), True, True, None, -1, 'no', True)
F.softmax_cross_entropy(scores(2, 3), V(labels(3, 2)))
F.softmax_cross_entropy(V(scores(2, 3)), V(chances(2, 3)))
F.softmax_cross_entropy(scores(2, 3), labels(3, 3))
F.softmax_cross_entropy(scores(2, 3), labels(3, 2, 1))
F.softmax_cross_entropy(scores(2, 3, 1), labels(3, 2))
F.softmax_cross_entropy(scores(6), labels(3, 6))
debug(lambda: F.softmax_cross_entropy(scores(2, 3), np.array([3, 0], 'i')))
debug(lambda: F.softmax_cross_entropy(scores(2, 3), np.array([-2, 0], 'i')))
debug(lambda: F.softmax_cross_entropy(scores(2, 3), np.array([-1, 0], 'i')))
debug(lambda: F.softmax_cross_entropy(scores(2, 3), np.array([3, 0], 'i'), ignore_label=3))
debug(lambda: F.softmax_cross_entropy(scores(2, 3), np.array([3, 0], 'i'), enable_double_backprop=True))
debug(lambda: F.embed_id(np.array([3, 0], 'i'), scores(3, 2)))
debug(lambda: F.embed_id(np.array([-1, 0], 'i'), scores(3, 2)))
debug(lambda: F.embed_id(np.array([-1, 0], 'i'), scores(3, 2), ignore_label=-1))
debug(lambda: F.embed_id(np.array([5, 0], 'i'), scores(3, 2), ignore_label=5))
debug(lambda: F.select_item(scores(2, 3), np.array([3, 0], 'i')))
debug(lambda: F.select_item(scores(2, 3), np.array([-1, 0], 'i')))
debug(lambda: L.EmbedID(3, 2)(np.array([3], 'i')))
debug(lambda: F.permutate(scores(3, 2), np.array([0, 3, 1], 'i')))
debug(lambda: F.permutate(scores(3, 2), np.array([0, 1, 1], 'i')))
debug(lambda: F.permutate(scores(3, 2), np.array([0, -1, 1], 'i')))
F.softmax_cross_entropy(scores(2, 3), np.array([3, 0], 'i'))
F.embed_id(np.array([3, 0], 'i'), scores(3, 2))
F.select_item(scores(2, 3), np.array([3, 0], 'i'))
F.permutate(scores(3, 2), np.array([0, 3, 1], 'i'))
F.embed_id(np.array([-1, 0], 'i'), scores(3, 2), ignore_label=-1)
F.embed_id(np.array([7, 0], 'i'), scores(3, 2), ignore_label=7)
F.embed_id(labels(3, 2, dtype='B'), scores(3, 2))
F.embed_id(labels(3, 2, dtype='q'), scores(3, 2))
F.embed_id(labels(3, 2, dtype='f'), scores(3, 2))
twice(lambda x: F.softmax_cross_entropy(x, labels(3, 2), enable_double_backprop=True), scores(2, 3))
twice(lambda x: F.softmax_cross_entropy(x, labels(3, 2), True, True, np.arange(3.).astype('f'), -1, 'no', True), scores(2, 3))
twice(lambda x: F.softmax_cross_entropy(x, chances(2, 3)), scores(2, 3))
twice(lambda x: F.sigmoid_cross_entropy(x, labels(2, 2, 3)), scores(2, 3))
twice(lambda x: F.huber_loss(x, chances(2, 3), .5), scores(2, 3))
F.accuracy(scores(4, 3), labels(3, 4))
F.accuracy(scores(4, 3, dtype='e'), labels(3, 4))
F.accuracy(scores(4, 3, dtype='d'), labels(3, 4))
F.accuracy(scores(4, 3, 1), labels(3, 4))
F.accuracy(scores(4, 3, 1, 1), labels(3, 4))
F.accuracy(scores(4, 3, 1, 1), labels(3, 4, 1))
F.accuracy(scores(4, 3), labels(3, 4, 1))
F.accuracy(scores(4, 3), labels(3, 4, 1, 1))
F.accuracy(scores(2, 3, 2), labels(3, 2, 2))
F.accuracy(scores(2, 3, 2, 2), labels(3, 2, 2, 2))
F.accuracy(scores(2, 3, 2, 2, 1), labels(3, 2, 2, 2))
F.accuracy(scores(2, 3, 2, 2), labels(3, 2, 2, 2, 1))
F.accuracy(scores(2, 3, 2), labels(3, 2))
F.accuracy(scores(2, 3, 1, 2), labels(3, 2, 2))
F.accuracy(scores(4, 3), labels(3, 4), ignore_label=0)
F.accuracy(scores(4, 3), np.full(4, 1, 'i'), ignore_label=1)
F.accuracy(scores(4, 3), labels(3, 4) - 1, ignore_label=-1)
F.accuracy(scores(2, 3, 2, 1), labels(3, 2, 2) - 1, ignore_label=-1)
F.accuracy(scores(4, 3), labels(3, 4, dtype='q'))
F.accuracy(scores(4, 3), labels(3, 4, dtype='B'))
F.accuracy(scores(4, 3), labels(3, 4, dtype='f'))
F.accuracy(labels(4, 4, 3), labels(3, 4))
F.accuracy(scores(4), labels(3, 4))
F.accuracy(scores(4, 3), labels(3, 3))
F.accuracy(V(scores(4, 3)), V(labels(3, 4)))
F.accuracy(scores(0, 3), labels(3, 0))
L.Classifier(lambda x: x)(scores(4, 3), labels(3, 4))
F.binary_accuracy(scores(4, 3), labels(2, 4, 3))
F.binary_accuracy(scores(4), labels(2, 4) - 1)
F.binary_accuracy(scores(4, dtype='e'), labels(2, 4))
F.binary_accuracy(scores(4, 1), labels(2, 4))
F.binary_accuracy(scores(4), labels(2, 4, 1))
F.binary_accuracy(scores(4), np.full(4, -1, 'i'))
F.binary_accuracy(scores(4), labels(2, 4, dtype='q'))
F.binary_accuracy(scores(4), labels(2, 4, dtype='?'))
F.binary_accuracy(scores(4), labels(2, 4, dtype='B'))
F.binary_accuracy(scores(4), labels(2, 4, dtype='f'))
F.binary_accuracy(np.zeros(3, 'f'), np.array([0, 1, -1], 'i'))
F.binary_accuracy(scores(0), labels(2, 0))
F.r2_score(scores(4), chances(4, 1)[:, 0])
F.r2_score(scores(4, 3), chances(4, 3))
F.r2_score(scores(4, 3), chances(4, 3), multioutput='raw_values')
F.r2_score(scores(4, 3), chances(4, 3), multioutput='variance_weighted')
F.r2_score(scores(4, 3), chances(4, 3), sample_weight=np.ones(4))
F.r2_score(scores(4, 3), np.ones((4, 3), 'f'))
F.r2_score(scores(4, 3), np.ones((4, 3), 'f'), multioutput='raw_values')
F.r2_score(np.ones((4, 3), 'f'), np.ones((4, 3), 'f'), multioutput='raw_values')
F.r2_score(scores(4, 3, dtype='e'), chances(4, 3, dtype='e'))
F.r2_score(scores(4), chances(4, 3))
F.r2_score(scores(2, 3, 2), chances(2, 3, 2), multioutput='raw_values')
F.r2_score(labels(3, 4), labels(2, 4))
F.classification_summary(scores(6, 3), labels(3, 6))
F.classification_summary(scores(6, 3), labels(3, 6), label_num=4)
F.classification_summary(scores(6, 3), labels(3, 6), beta=2.)
F.classification_summary(scores(6, 3), labels(3, 6), ignore_label=0)
F.classification_summary(scores(6, 3), labels(2, 6))
F.classification_summary(scores(2, 3, 3), labels(3, 2, 3))
F.classification_summary(scores(2, 3, 3, 1), labels(3, 2, 3))
F.precision(scores(6, 3), labels(3, 6))
F.recall(scores(6, 3), labels(3, 6))
F.f1_score(scores(6, 3), labels(3, 6))
F.recall(scores(6, 3), labels(3, 6), label_num=4)
F.precision(scores(6, 3), labels(3, 6, dtype='q'), ignore_label=1)
F.sigmoid_cross_entropy(scores(4, 3), labels(2, 4))
F.sigmoid_cross_entropy(scores(4, 3), labels(2, 4, 3, dtype='f'))
F.sigmoid_cross_entropy(scores(4, 3), np.full((4, 3), -1, 'i'))
F.sigmoid_cross_entropy(scores(4, 3), np.full((4, 3), -1, 'i'), normalize=False)
F.sigmoid_cross_entropy(scores(4, 3), labels(2, 4, 3, dtype='b'))
F.sigmoid_cross_entropy(scores(4, 3), labels(2, 4, 3, dtype='?'))
F.sigmoid_cross_entropy(scores(4, 3), labels(2, 4, 3, dtype='B'))
F.softmax(scores(2, 3), axis=2)
F.softmax(scores(2, 3), axis=-1)
F.softmax(scores(2, 3), axis=-3)
F.huber_loss(scores(2, 3), chances(2, 3), 0.)
F.hinge(scores(4, 3), labels(3, 4, dtype='q'))
F.hinge(scores(4, 3), labels(3, 4, 1))
F.negative_sampling(V(scores(2, 3)), labels(3, 2), scores(3, 3), lambda shape: labels(3, *shape), 2)
F.negative_sampling(V(scores(2, 3)), labels(3, 2), scores(3, 3), lambda shape: labels(3, *shape), 2, reduce='no')
F.negative_sampling(V(scores(2, 3)), labels(3, 2) - 1, scores(3, 3), lambda shape: labels(3, *shape), 2)
F.negative_sampling(V(scores(2, 3)), labels(3, 2), scores(3, 3), lambda shape: labels(3, *shape), 2, reduce='sum')
F.negative_sampling(V(scores(2, 3)), labels(3, 2), scores(3, 3), lambda shape: labels(3, *shape), 2, return_samples=True)
"""


def case_classifier_observes():
    model = L.Classifier(L.Linear(3, 3, initialW=1))
    reporter = chainer.Reporter()
    reporter.add_observer("main", model)
    with reporter:
        model(scores(4, 3), labels(3, 4))
    return {key: value for key, value in sorted(reporter.observation.items())}


def case_classifier_key():
    model = L.Classifier(L.Linear(3, 3, initialW=1), label_key="t")
    return model(x=scores(4, 3), t=labels(3, 4)), model.accuracy


def case_classifier_wrong_key():
    return L.Classifier(L.Linear(3, 3), label_key="t")(x=scores(4, 3))


def case_classifier_wrong_index():
    return L.Classifier(L.Linear(3, 3), label_key=5)(scores(4, 3), labels(3, 4))


def case_classifier_key_type():
    return L.Classifier(L.Linear(3, 3), label_key=1.5)


def case_negative_sampling_samples_once():
    shapes = []

    def sampler(shape):
        shapes.append(shape)
        return labels(4, *shape)

    link = L.NegativeSampling(3, [1, 2, 3, 4], 2)
    link.sampler.sample = sampler
    link.W.array[...] = scores(4, 3)
    loss = link(V(scores(2, 3)), labels(4, 2))
    return loss, shapes
