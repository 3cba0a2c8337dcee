"""Links, distributions, data sets and tools, as Chainer's own tests look at them."""

import io
import multiprocessing
import os
import pickle
import warnings

import chainer
import chainer.distributions as D
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import iterators, link_hooks, testing
from chainer.dataset import tabular
from chainer.serializers import NpzDeserializer
from chainer.training import triggers

SAME_TYPE = "transform must not change its return type"
X = np.array([[0.5, -1, 2], [1, 0, -2]], "f")


def warned(run):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = run()
    return value, sorted({w.category.__name__ for w in found})


def error_of(run, text):
    """The class of the error, and whether its text begins so."""
    try:
        return run()
    except Exception as error:
        return type(error).__name__, str(error).startswith(text)


def message(run):
    try:
        return run()
    except Exception as error:
        return type(error).__name__, str(error)


EXPRESSIONS = """
    L.Bias(0, (2,))(X, X)
    L.Bias(0)(X)
    L.Scale(0)(X)
    L.Scale(0, (2,))(X, X)
    L.Bias(0, (2,))()
    L.Bilinear(2, 3, 4, initialW=np.ones((2, 3, 5), "f"))
    L.Bilinear(2, 3, 4, initial_bias=(np.ones((3, 4), "f"), np.ones((3, 4), "f"), np.ones(4, "f")))
    L.Bilinear(2, 3, 4, initial_bias=(np.ones((2, 4), "f"), np.ones((2, 4), "f"), np.ones(4, "f")))
    L.Bilinear(2, 3, 4, initial_bias=(np.ones((2, 4), "f"), np.ones((3, 4), "f"), np.ones(5, "f")))
    L.GroupNormalization(3.5).groups
    L.GroupNormalization(3.5)(np.ones((2, 7, 1), "f"))
    L.GroupNormalization(2)(np.ones((2, 7, 1), "f"))
    L.Classifier(L.Linear(2, 2), label_key=1.5)
    L.LayerNormalization(3)(np.ones((2, 3, 4), "f"))
    triggers.EarlyStoppingTrigger(patience=3, patients=4)
    triggers.EarlyStoppingTrigger(patience=3).patience
    triggers.EarlyStoppingTrigger(other=3)
    D.Bernoulli(p=np.array([1, 0, 0.3], "f")).log_prob(np.array([0.25, 0.25, 0.5], "f"))
    D.Bernoulli(p=np.array([1, 0, 0.3], "f")).prob(np.array([0.25, 0.25, 0.5], "f"))
    D.Bernoulli(p=np.array([1, 0, 0.3], "f"), binary_check=True).prob(np.array([0.25, 0.25, 0.5], "f"))
    D.Bernoulli(logit=np.array([0.5, -1, 3], "f")).log_prob(np.array([0.25, 0.25, 0.5], "f"))
    D.Bernoulli(logit=np.array([0.5, -1, 3], "f")).prob(np.array([0.25, 0.25, 0.5], "f"))
    D.Bernoulli(logit=np.array([0.5, -1, 3], "f"), binary_check=True).log_prob(np.array([0.25, 1, 0], "f"))
    D.OneHotCategorical(np.array([0.25, 0.75], "f")).log_prob(np.array([0, 1]))
    chainer.utils.sparse.to_coo(X, ldnz=6).data.array
    chainer.utils.sparse.to_coo(X, ldnz=6).row
    chainer.utils.sparse.to_coo(X, ldnz=6).col
    chainer.utils.sparse.CooMatrix(X[0], np.arange(3), np.arange(3), (3, 3), order="X")
    chainer.utils.sparse.CooMatrix(X[0], np.arange(3), np.arange(3), (3, 3), order="F").order
    chainer.utils.sparse.CooMatrix(X[0], np.arange(3), np.arange(3), (3, 3)).order
    chainer.utils.sparse.get_order(np.array([0, 1, -1]), np.array([0, 1, 1]))
    chainer.utils.sparse.get_order(np.array([0, 1, 1]), np.array([0, 1, -1]))
    chainer.utils.sparse.get_order(np.array([0, 1, -1]), np.array([0, 1, -1]))
    chainer.utils.conv_nd.im2col_nd_cpu(np.ones((1, 1, 3, 3)), (2,), (1,), (0,))
    chainer.utils.conv_nd.im2col_nd_cpu(np.ones((1, 1, 3)), (2, 2), (1, 1), (0, 0))
    chainer.utils.conv_nd.im2col_nd_cpu(np.ones((1, 1, 3)), (2,), (1, 1), (0,))
    chainer.utils.conv_nd.col2im_nd_cpu(np.ones((1, 1, 2, 2)), (1, 1), (0, 0), (3, 3))
    chainer.utils.conv_nd.col2im_nd_cpu(np.ones((1, 1, 2, 2)), (1,), (0,), (3, 3))
    L.ConvolutionND(2, 4, 6, 3, groups=2)._initialize_params(4)
    L.ConvolutionND(2, None, 6, 3, groups=4)._initialize_params(4)
    L.ConvolutionND(2, None, 6, (3, 2), groups=4)._initialize_params(8)
"""


def case_initialized_convolutions():
    link = L.ConvolutionND(2, None, 6, (3, 2), groups=2)
    link._initialize_params(4)
    return link.W.shape


def case_moments_of_cauchy():
    d = D.Cauchy(np.zeros((2, 3), "f"), np.ones((2, 3), "f"))
    return [
        warned(lambda: d.mean),
        warned(lambda: d.mean),
        warned(lambda: d.variance),
        warned(lambda: d.variance),
    ]


def case_patched_negative_sampling():
    from chainer.functions.loss import negative_sampling

    link = L.NegativeSampling(3, [1, 2, 3], 2)
    link.W.array[...] = 1
    seen = []
    original = negative_sampling.negative_sampling

    def patched(*args, **kwargs):
        seen.append((len(args), sorted(kwargs), args[2] is link.W, args[4]))
        return original(*args, **kwargs)

    negative_sampling.negative_sampling = patched
    try:
        link(X, np.array([0, 1], "i"))
    finally:
        negative_sampling.negative_sampling = original
    return seen


def case_paths_of_hierarchical_softmax():
    f = L.BinaryHierarchicalSoftmax(3, ((0, 1), (2, 3)))._func
    return f.codes, f.begins, f.paths


def case_flags_of_zoneout_lstm():
    link = L.StatefulZoneoutLSTM(3, 2)
    link(X)
    found = []
    for state in (link.c, link.h):
        found.append((state.creator.flag_h.shape, state.creator.flag_x.dtype))
    return found


def case_mask_of_dropconnect():
    link = L.SimplifiedDropconnect(3, 2)
    return link(X).creator.mask.shape


def case_rows_of_slices():
    data = tabular.from_data({"a": np.arange(10), "b": np.arange(10) * 2})
    found = []
    for rows in ([True, 4, False], [True] * 9 + [False], [1, 3], [False] * 10):
        found.append(error_of(lambda r=rows: data.slice[r].fetch(), ""))
    return found


def case_modes_of_slices():
    class Data(chainer.dataset.TabularDataset):
        keys = ("a", "b", "c")
        mode = None

        def __len__(self):
            return 4

        def get_examples(self, indices, key_indices):
            return tuple(np.arange(4) for _ in key_indices or range(3))

    data = Data()
    return [
        error_of(lambda k=k: data.slice[:, k].mode, "")
        for k in (("a", "b"), ("a",), "a", [0], (0, 1), None, [True, False, True])
    ]


def case_slices_of_concatenations():
    seen = []

    class Data(chainer.dataset.TabularDataset):
        keys = ("a",)
        mode = tuple

        def __init__(self, length):
            self.length = length

        def __len__(self):
            return self.length

        def get_examples(self, indices, key_indices):
            seen.append(str(indices))
            n = self.length if indices is None else len(np.arange(self.length)[indices])
            return (np.arange(n),)

    data = Data(10).concat(Data(5))
    for index in (
        slice(13, 6, -2),
        slice(2, 12),
        slice(0, 15, 4),
        slice(1, 4),
        slice(14, 11, -1),
        [1, 12, 3],
        [14, 10],
        [1, 2],
        slice(5, 5),
        slice(14, None, -3),
    ):
        message(lambda i=index: data.get_examples(i, None))
        seen.append("")
    return seen


def case_keys_of_joins():
    seen = []

    class Data(chainer.dataset.TabularDataset):
        mode = tuple

        def __init__(self, *keys):
            self.names = keys

        @property
        def keys(self):
            return self.names

        def __len__(self):
            return 4

        def get_examples(self, indices, key_indices):
            seen.append((self.names[0], str(key_indices)))
            return tuple(
                np.arange(4) + i for i in key_indices or range(len(self.names))
            )

    data = Data("a", "b").join(Data("c", "d"))
    found = []
    for keys in ((1, 0), (0, 0, 1), (3, 1, 2, 1), (2,), (3, 2, 0)):
        found.append(data.get_examples(None, keys))
    return seen, found


def case_dicts_from_data():
    def function(i):
        return {"a": i, "b": i * 2}

    data = tabular.from_data((("a", "b"), lambda i: {"a": i, "b": 2 * i}), size=4)
    both = tabular.from_data(
        {"c": np.arange(4), ("a", "b"): lambda i: {"a": i, "b": 2 * i}}, size=4
    )
    return data.mode, data[1], data.fetch(), both.mode, both[2], both.fetch()


def _data():
    return tabular.from_data({"a": np.arange(4), "b": np.arange(4) * 2})


def case_transformed_to_scalars():
    data = _data().transform(("s",), lambda a, b: a + b)
    return data.mode, data[1], data.fetch()


def case_transforms_that_change_their_kind():
    def change(a, b):
        return {"s": a} if a > 1 else (a,)

    def other(a, b):
        return a if a > 1 else {"s": a}

    return [
        error_of(lambda f=f: _data().transform(("s",), f).fetch(), SAME_TYPE)
        for f in (change, other)
    ]


def case_transforms_that_change_their_kind_later():
    def change(a, b):
        return {"s": a} if a > 1 else (a,)

    data = _data().transform(("s",), change)
    return (
        data.mode,
        data[1],
        error_of(lambda: data[2], SAME_TYPE),
        error_of(data.fetch, SAME_TYPE),
    )


def case_transformed_batches():
    data = _data().transform_batch(("s",), lambda a, b: a + b)
    return data.mode, data[1], data.fetch()


def case_transformed_batches_of_another_length():
    data = _data().transform_batch(("s",), lambda a, b: ([1],))
    text = "transform_batch must not change the length of data"
    return error_of(data.fetch, text), error_of(data.slice[:2].fetch, text)


def case_transformed_batches_of_another_kind():
    seen = []

    def change(a, b):
        seen.append(0)
        return (a,) if len(seen) < 2 else {"s": a}

    data = _data().transform_batch(("s",), change)
    return data.mode, error_of(data.fetch, "transform_batch must not change its")


def case_resets_of_finalized_iterators():
    it = iterators.MultiprocessIterator([1, 2, 3], 2, n_processes=1)
    it.next()
    it.finalize()
    return it.reset()


def case_static_chains():
    class Mine(chainer.Chain):
        def __init__(self):
            super().__init__(l=L.Linear(3, 2))

        @chainer.static_graph
        def forward(self, x):
            return self.l(x)

    found = []
    for use in (False, True):
        link = Mine()
        with chainer.using_config("use_static_graph", use):
            link(X)
        found.append(
            (hasattr(link, "schedule_manager"), hasattr(link, "static_schedule"))
        )
    return found


def case_values_of_stopping_triggers():
    trainer = testing.get_trainer_with_mock_updater(iter_per_epoch=1)
    trigger = triggers.EarlyStoppingTrigger(
        check_trigger=(1, "epoch"), monitor="loss", patience=2, max_trigger=(9, "epoch")
    )
    found = []
    for value in (3, 2, 2.5, 2.5, 2.5):
        trainer.observation = {"loss": chainer.Variable(np.array(value, "f"))}
        trainer.updater.update()
        found.append(trigger(trainer))
    return found


def case_readers_after_forks():
    seen = []

    class Reader(io.BytesIO):
        def after_fork(self):
            seen.append(os.getpid())

    file = io.BytesIO()
    writer = chainer.datasets.PickleDatasetWriter(file)
    writer.write(1)
    writer.write({"a": 2})
    writer.flush()
    reader = Reader(file.getvalue())
    data = chainer.datasets.PickleDataset(reader)
    first = data[1]
    read, write = os.pipe()

    def tell():
        value = data[0]
        here = seen == [os.getpid()]
        os.write(write, f"{value} {len(seen)} {here}".encode())

    child = multiprocessing.get_context("fork").Process(target=tell)
    child.start()
    child.join()
    return first, os.read(read, 99).decode()


def case_pickled_bytes():
    file = io.BytesIO()
    writer = chainer.datasets.PickleDatasetWriter(file)
    writer.write(1)
    writer.write({"a": 2})
    writer.flush()
    data = chainer.datasets.PickleDataset(io.BytesIO(file.getvalue()))
    other = pickle.loads(pickle.dumps(data))
    return len(other), other[1]


def case_files_of_data():
    from chainer.datasets import pickle_dataset

    with open("data", "wb") as file:
        with chainer.datasets.PickleDatasetWriter(file) as writer:
            writer.write(1)
    reader = pickle_dataset._FileReader("data")
    with chainer.datasets.PickleDataset(reader) as data:
        return data[0]


def case_files_of_texts():
    with open("a", "w") as file:
        file.write("one\ntwo\n")
    data = chainer.datasets.TextDataset("a")
    return [f.closed for f in data._fps], data[1]


def case_hooks_of_empty_weights():
    link = L.Linear(3, 0)
    return link.add_hook(link_hooks.SpectralNormalization())


def case_converted_batches():
    from chainer.training import extensions

    seen = []

    class Iterator(chainer.dataset.Iterator):
        def __init__(self):
            self.batches = [{"x": X}]

        def __copy__(self):
            return Iterator()

        def __next__(self):
            if not self.batches:
                raise StopIteration
            return self.batches.pop()

        next = __next__

        def __iter__(self):
            return self

        def finalize(self):
            pass

    def converter(batch, device):
        seen.append(sorted(batch))
        return X

    class Target(chainer.Link):
        def forward(self, x):
            chainer.report({"loss": x.sum()}, self)

    evaluator = extensions.Evaluator(Iterator(), Target(), converter=converter)
    return evaluator.evaluate(), seen


def case_averages_of_old_models():
    link = L.DecorrelatedBatchNormalization(4, groups=2)
    link.to_cpu()
    old = {
        "avg_mean": np.array([1, 2], "f"),
        "avg_projection": np.eye(2, dtype="f") * 3,
        "N": np.array(3),
    }
    numbers = warned(lambda: NpzDeserializer(old).load(link))[1]
    return link.avg_mean, link.avg_projection, numbers


def case_kept_folders():
    from chainer.dataset import download

    before = download.get_dataset_root()
    with open("file", "w"):
        pass
    download.set_dataset_root("file")
    try:
        return download.cached_download("http://localhost/none")
    finally:
        download.set_dataset_root(before)


def case_types_are_promoted_without_checks():
    found = []
    x64 = X.astype("d")
    with chainer.using_config("type_check", False):
        for dtype in "ef":
            with chainer.using_config("dtype", np.dtype(dtype)):
                link = L.Linear(3, 2, initialW=1)
                found.append(link(x64))
                deconvolution = L.Deconvolution2D(3, 2, 2, initialW=1)
                found.append(deconvolution(x64.reshape(2, 3, 1, 1)))
                normalization = L.BatchNormalization(3)
                with chainer.using_config("train", False):
                    found.append(normalization(x64))
                found.append(normalization.avg_mean.dtype)
    return found


def case_types_are_checked():
    return L.Linear(3, 2, initialW=1)(X.astype("d"))
