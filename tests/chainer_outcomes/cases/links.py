"""Links: shapes, outputs and states; argument checks; snapshots of earlier versions."""

import chainer
import chainer.functions as F
import chainer.initializers
import chainer.links as L
import numpy as np

V = chainer.Variable


def x(*shape, dtype="f"):
    size = int(np.prod(shape))
    return (4 * (np.arange(1, size + 1) * 0.618 % 1) - 2).reshape(shape).astype(dtype)


def u(*shape):
    return (x(*shape) + 2) / 4


def i(below, *shape):
    return (u(*shape) * below).astype("i")


def fill(link):
    """Every parameter gets known numbers."""
    for _, param in sorted(link.namedparams()):
        if param.array is not None:
            param.array[...] = x(*param.shape)
    return link


def run(link, *inputs, **options):
    """The output, the gradients' sums, and the persistent values after it."""
    with chainer.using_config("train", True):
        fill(link)
        link.cleargrads()
        ys = link(*inputs, **options)
        fill(link)
        ys = link(*inputs, **options)
    first = ys[0] if isinstance(ys, tuple) else ys
    F.sum(first * first).backward()
    found = {}
    for name, param in sorted(link.namedparams()):
        gradient = param.grad
        found[name] = (
            param.shape,
            None if gradient is None else float(abs(gradient).sum()),
        )
    values = chainer.serializers.npz.serialize(link)
    return first, found, sorted(values)


def names(link):
    return {
        name: p.shape if p.array is not None else None
        for name, p in sorted(link.namedparams())
    }


def stateful(link, *inputs):
    """Outputs of three calls, the last after a reset."""
    fill(link)
    found = [link(*inputs), link(*inputs)]
    link.reset_state()
    return [*found, link(*inputs)]


def loaded(link, arrays):
    chainer.serializers.NpzDeserializer(arrays).load(link)
    found = chainer.serializers.npz.serialize(link)
    return {
        name: found[name] for name in sorted(found) if found[name].dtype.kind != "O"
    }


def mnbn(**options):
    return L.BatchNormalization(2, **options)


EXPRESSIONS = """
run(L.Linear(3, 2), x(2, 3))
run(L.Linear(2), x(2, 3))
run(L.Linear(None, 2), x(2, 3))
run(L.Linear(3, 2, nobias=True), x(2, 3))
run(L.Linear(2), x(2, 3, 4))
run(L.Linear(3, 2), x(2, 4, 3), n_batch_axes=2)
names(L.Linear(None, 2)), names(L.Linear(2))
run(L.Bias(1, (3,)), x(2, 3))
run(L.Bias(0), x(2, 3), x(2))
L.Bias()
L.Bias(0)(x(2, 3))
L.Bias(1, (3,))(x(2, 3), x(3))
run(L.Scale(1, (3,)), x(2, 3))
run(L.Scale(1, (3,), bias_term=True), x(2, 3))
run(L.Scale(1, bias_term=True, bias_shape=(3,)), x(2, 3), x(3))
L.Scale(1)(x(2, 3))
L.Scale(1, (3,))(x(2, 3), x(3))
run(L.Bilinear(2, 3, 2), x(2, 2), x(2, 3))
run(L.Bilinear(2, 3, 2, nobias=True), x(2, 2), x(2, 3))
L.Bilinear(2, 3, 2, initialW=x(2, 3, 2)).W.array
L.Bilinear(2, 3, 2, initialW=x(3, 3, 2))
L.Bilinear(2, 3, 2, initial_bias=(x(2, 2), x(3, 2), x(2)))
L.Bilinear(2, 3, 2, initial_bias=x(2))
L.Bilinear(2, 3, 2)(x(2, 3), x(2, 3))
L.Bilinear(None, 3, 2)
run(L.Convolution2D(2, 3, 2), x(1, 2, 3, 3))
run(L.Convolution2D(None, 3, 2), x(1, 2, 3, 3))
run(L.Convolution2D(3, 2), x(1, 2, 3, 3))
run(L.Convolution2D(2, 4, 2, groups=2), x(1, 2, 3, 3))
L.Convolution2D(3, 4, 2, groups=2)
L.Convolution2D(2, 3, 2, groups=2)
run(L.ConvolutionND(1, 2, 3, 2), x(1, 2, 4))
run(L.ConvolutionND(2, None, 3, 2), x(1, 2, 3, 3))
run(L.ConvolutionND(2, 3, 2), x(1, 2, 3, 3))
names(L.ConvolutionND(2, None, 3, 2)), names(L.ConvolutionND(2, 3, 2))
run(L.Convolution1D(2, 3, 2), x(1, 2, 4))
run(L.Convolution3D(1, 2, 2), x(1, 1, 2, 2, 2))
run(L.Deconvolution2D(2, 3, 2), x(1, 2, 2, 2))
run(L.Deconvolution2D(None, 3, 2), x(1, 2, 2, 2))
run(L.Deconvolution2D(2, 3, 3, stride=2, outsize=(5, 5)), x(1, 2, 2, 2))
run(L.Deconvolution2D(2, 3, 3, stride=2, outsize=(6, 6)), x(1, 2, 2, 2))
run(L.DeconvolutionND(1, 2, 3, 2), x(1, 2, 3))
run(L.DeconvolutionND(1, None, 3, 2), x(1, 2, 3))
run(L.DeconvolutionND(2, 2, 3, 3, stride=2, outsize=(5, 6)), x(1, 2, 2, 2))
run(L.DepthwiseConvolution2D(2, 2, 2), x(1, 2, 3, 3))
run(L.DepthwiseConvolution2D(None, 2, 2), x(1, 2, 3, 3))
run(L.DilatedConvolution2D(2, 2, 2, dilate=2), x(1, 2, 4, 4))
run(L.DilatedConvolution2D(None, 2, 2, dilate=2), x(1, 2, 4, 4))
run(L.LocalConvolution2D(2, 2, 3, 2), x(1, 2, 3, 3))
run(L.LocalConvolution2D(2, 2, None, 2), x(1, 2, 3, 3))
run(L.DeformableConvolution2D(2, 2, 2), x(1, 2, 3, 3))
run(L.EmbedID(4, 2), i(4, 3))
run(L.EmbedID(4, 2, ignore_label=-1), np.array([0, -1, 2], 'i'))
run(L.Highway(3), x(2, 3))
run(L.Maxout(3, 2, 2), x(2, 3))
run(L.Maxout(None, 2, 2), x(2, 3))
run(L.PReLU((3,)), x(2, 3))
run(L.Swish((3,)), x(2, 3))
run(L.Swish(None), x(2, 3))
run(L.MLPConvolution2D(2, (3, 2), 2), x(1, 2, 3, 3))
run(L.MLPConvolution2D(None, (3, 2), 2), x(1, 2, 3, 3))
run(L.Inception(2, 2, 2, 2, 2, 2, 2), x(1, 2, 4, 4))
run(L.Inception(None, 2, 2, 2, 2, 2, 2), x(1, 2, 4, 4))
run(L.InceptionBN(2, 2, 2, 2, 2, 2, 'avg', 2), x(2, 2, 4, 4))
run(L.InceptionBN(2, 2, 2, 2, 2, 2, 'max', 2), x(2, 2, 4, 4))
run(L.InceptionBN(2, 0, 2, 2, 2, 2, 'max', stride=2), x(2, 2, 4, 4))
run(L.InceptionBN(2, 2, 2, 2, 2, 2, 'max'), x(2, 2, 4, 4))
L.InceptionBN(2, 2, 2, 2, 2, 2, 'none', 2)
L.InceptionBN(2, 2, 2, 2, 2, 2, 'max', stride=2)
run(L.Parameter(x(2, 3)))
run(L.BatchNormalization(3), x(4, 3))
run(L.BatchNormalization(axis=0), x(4, 3))
run(L.BatchNormalization(size=3, axis=0), x(4, 3))
run(L.BatchNormalization(3, use_gamma=False), x(4, 3))
run(L.BatchNormalization(3, use_beta=False), x(4, 3))
run(L.BatchNormalization(3), x(4, 3, 2, 2))
run(L.BatchNormalization((3, 2)), x(4, 3, 2))
run(L.BatchNormalization(3), x(4, 3), finetune=True)
run(L.BatchNormalization(3, initial_avg_mean=1, initial_avg_var=2), x(4, 3))
L.BatchNormalization()
L.BatchNormalization(3, axis=(0, 2)).axis
L.BatchNormalization(3, dtype='d').gamma.dtype
run(L.BatchRenormalization(3), x(4, 3))
run(L.BatchRenormalization(3, rmax=1., dmax=0.), x(4, 3))
run(L.DecorrelatedBatchNormalization(4, groups=2), x(8, 4))
run(L.GroupNormalization(2), x(2, 4, 3))
run(L.GroupNormalization(2, 4), x(2, 4, 3))
run(L.LayerNormalization(), x(2, 3))
run(L.LayerNormalization(3), x(2, 3))
stateful(L.LSTM(3, 2), x(2, 3))
stateful(L.LSTM(None, 2), x(2, 3))
stateful(L.GRU(3, 2), x(2, 3))
stateful(L.StatefulGRU(3, 2), x(2, 3))
stateful(L.StatefulMGU(3, 2), x(2, 3))
stateful(L.StatefulPeepholeLSTM(3, 2), x(2, 3))
stateful(L.StatefulZoneoutLSTM(3, 2, c_ratio=0, h_ratio=0), x(2, 3))
run(L.StatelessLSTM(3, 2), None, None, x(2, 3))
run(L.StatelessLSTM(3, 2), x(2, 2), x(2, 2), x(2, 3))
run(L.StatelessGRU(3, 2), x(2, 2), x(2, 3))
run(L.StatelessMGU(3, 2), x(2, 2), x(2, 3))
run(L.ChildSumTreeLSTM(3, 2), x(2, 2), x(2, 2), x(2, 2), x(2, 2), x(2, 3))
run(L.ChildSumTreeLSTM(3, 2), x(2, 2), None, x(2, 2), None, x(2, 3))
run(L.ChildSumTreeLSTM(3, 2), None, None, None, None, x(2, 3))
run(L.ChildSumTreeLSTM(3, 2), None, None, None, None, None)
run(L.NaryTreeLSTM(3, 2, n_ary=2), x(2, 2), x(2, 2), x(2, 2), x(2, 2), x(2, 3))
run(L.NaryTreeLSTM(3, 2, n_ary=2), x(2, 2), None, x(2, 2), None, x(2, 3))
run(L.NaryTreeLSTM(3, 2, n_ary=2), None, None, None, None, x(2, 3))
run(L.ChildSumTreeLSTM(3, 2), x(2, 2), None, x(2, 2), None, None)
run(L.NaryTreeLSTM(3, 2, n_ary=2), None, None, None, x(2, 2), None)
run(L.NStepLSTM(1, 3, 2, 0.), None, None, [x(2, 3), x(1, 3)])
run(L.NStepBiLSTM(1, 3, 2, 0.), None, None, [x(2, 3), x(1, 3)])
run(L.NStepGRU(2, 3, 2, 0.), None, [x(2, 3), x(1, 3)])
run(L.NStepBiGRU(1, 3, 2, 0.), None, [x(1, 3), x(2, 3)])
run(L.NStepRNNTanh(1, 3, 2, 0.), None, [x(2, 3), x(1, 3)])
run(L.NStepRNNReLU(1, 3, 2, 0.), None, [x(2, 3), x(1, 3)])
run(L.NStepBiRNNTanh(1, 3, 2, 0.), None, [x(2, 3), x(1, 3)])
L.NStepLSTM(1, 3, 2, 0.)(None, None, x(2, 3))
L.NStepLSTM(1, 3, 2, 0.).init_hx([x(2, 3)]).shape
L.NStepLSTM(1, 3, 2, 0.).rnn_type if hasattr(L.NStepLSTM, 'rnn_type') else None
run(L.CRF1d(3), [x(2, 3), x(2, 3)], [i(3, 2), i(3, 2)])
L.CRF1d(3).argmax([x(2, 3), x(2, 3)])
run(L.BinaryHierarchicalSoftmax(3, ((0, 1), 2)), x(2, 3), i(3, 2))
L.BinaryHierarchicalSoftmax(3, ((0, 1), (2,)))
L.BinaryHierarchicalSoftmax.create_huffman_tree({0: 8, 1: 5, 2: 6, 3: 4})
L.BinaryHierarchicalSoftmax.create_huffman_tree({})
run(L.SimplifiedDropconnect(3, 2, ratio=0.), x(2, 3))
run(L.SimplifiedDropconnect(None, 2, ratio=0.), x(2, 3))
names(L.VGG16Layers(None))['/conv1_1/W']
sorted(L.Classifier(L.Linear(1, 1)).serialize.__name__)
loaded(L.BatchNormalization(2), {'gamma': x(2), 'beta': x(2), 'avg_mean': x(2), 'avg_var': u(2), 'N': np.array(3)})
loaded(L.BatchNormalization(2), {'gamma': x(2), 'beta': x(2), 'avg_mean': x(2), 'avg_var': u(2)})
loaded(L.BatchRenormalization(2), {'gamma': x(2), 'beta': x(2), 'avg_mean': x(2), 'avg_var': u(2), 'N': np.array(3)})
loaded(L.BatchRenormalization(2), {'gamma': x(2), 'beta': x(2), 'avg_mean': x(2), 'avg_var': u(2), 'N': np.array(3), 'r': np.array(1)})
loaded(L.DecorrelatedBatchNormalization(2, 1), {'avg_mean': x(1, 2), 'avg_projection': x(1, 2, 2), 'N': np.array(3)})
loaded(L.DecorrelatedBatchNormalization(2, 1), {'expectation': x(2), 'projection': x(2, 2), 'N': np.array(3)})
loaded(L.BatchNormalization(axis=0), {'gamma': x(2), 'beta': x(2), 'avg_mean': x(2), 'avg_var': u(2), 'N': np.array(3)})
"""


def trigger_loaded(trigger, arrays):
    import warnings

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        trigger.serialize(chainer.serializers.NpzDeserializer(arrays, strict=False))
    state = {}
    trigger.serialize(chainer.serializers.DictionarySerializer(state))
    return {k: state[k] for k in sorted(state)}, sorted(
        {w.category.__name__ for w in found}
    )


def case_old_interval_trigger():
    return trigger_loaded(chainer.training.triggers.IntervalTrigger(1, "epoch"), {})


def case_interval_trigger():
    state = {"previous_iteration": np.array(3), "previous_epoch_detail": np.array(1.5)}
    return trigger_loaded(chainer.training.triggers.IntervalTrigger(1, "epoch"), state)


def case_old_once_trigger():
    return trigger_loaded(chainer.training.triggers.OnceTrigger(), {})


def case_old_manual_trigger():
    return trigger_loaded(
        chainer.training.triggers.ManualScheduleTrigger([1, 2], "epoch"), {}
    )


def case_old_summary():
    summary = chainer.reporter.Summary()
    summary.add(1.0)
    return trigger_loaded(summary, {})


def case_old_dict_summary():
    import warnings

    summary = chainer.reporter.DictSummary()
    summary.add({"a": 1.0})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        summary.serialize(chainer.serializers.NpzDeserializer({}, strict=False))
    return sorted({w.category.__name__ for w in found})


def case_dict_summary_entries():
    summary = chainer.reporter.DictSummary()
    summary.add({"a": 1.0, "b": 2.0})
    state = {}
    summary.serialize(chainer.serializers.DictionarySerializer(state))
    return {k: str(state[k]) for k in sorted(state)}
