"""Evaluation on several ranks against one process with all of the data."""

import itertools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import create_multi_node_evaluator, scatter_dataset
from renga.training import extensions

N = 23
RANDOM = np.random.RandomState(1)
X = RANDOM.uniform(-1, 1, (N, 3)).astype("float32")
T = RANDOM.randint(0, 4, N).astype("int32")
W = RANDOM.uniform(-1, 1, (4, 3)).astype("float32")


def expected(n=N):
    """Accuracy and cross entropy by their definitions, in float64."""
    y = X[:n].astype("float64") @ W.T.astype("float64")
    log_p = y - np.log(np.exp(y).sum(axis=1, keepdims=True))
    return {
        "main/accuracy": np.mean(y.argmax(axis=1) == T[:n]),
        "main/loss": -np.mean(log_p[np.arange(n), T[:n]]),
    }


def make_evaluator(shard, batch, kind=extensions.Evaluator, shuffle=False):
    model = L.Classifier(L.Linear(3, 4, nobias=True, initialW=W))
    iterator = renga.iterators.SerialIterator(
        shard, batch, repeat=False, shuffle=shuffle
    )
    return kind(iterator, model)


@pytest.mark.parametrize("n", [N, 2])
@pytest.mark.parametrize("equal", [True, False])
def test_every_example_counts_once(ranks, n, equal):
    data = renga.datasets.TupleDataset(X[:n], T[:n])

    def evaluate(shard, comm, batch, shuffle):
        evaluator = make_evaluator(shard, batch, shuffle=shuffle)
        assert create_multi_node_evaluator(evaluator, comm) is evaluator
        evaluator()
        return evaluator()

    def act(comm):
        shard = scatter_dataset(
            data if comm.rank == 0 else None, comm, force_equal_length=equal
        )
        ways = itertools.product([1, 4, N], [True, False])
        return [evaluate(shard, comm, *way) for way in ways]

    for results in ranks(act):
        for result in results:
            assert result == pytest.approx(expected(n), abs=1e-6)


def transformed(scatter):
    data = renga.datasets.TupleDataset(X, T)
    return renga.datasets.TransformDataset(scatter(data), lambda example: example)


def columns(scatter):
    return renga.datasets.TupleDataset(scatter(X), scatter(T))


def named_columns(scatter):
    data = renga.datasets.DictDataset(x=scatter(X), t=scatter(T))
    return renga.datasets.TransformDataset(data, lambda row: (row["x"], row["t"]))


def columns_of_one_shard(scatter):
    shard = scatter(renga.datasets.TupleDataset(X, T))
    parts = [lambda example, i=i: example[i] for i in range(2)]
    return renga.datasets.TupleDataset(
        *(renga.datasets.TransformDataset(shard, part) for part in parts)
    )


WRAPPED = [transformed, columns, named_columns, columns_of_one_shard]


@pytest.mark.parametrize("make", WRAPPED)
def test_wrapped_shards_count_once_too(ranks, make):
    def act(comm):
        data = make(lambda data: scatter_dataset(data, comm))
        length = len(data)
        found = create_multi_node_evaluator(make_evaluator(data, 4), comm)()
        assert len(data) == length
        return found

    for result in ranks(act):
        assert result == pytest.approx(expected(), abs=1e-6)


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("name", ["SubDataset", "ConcatenatedDataset"])
def test_other_wrappers_of_shards_with_repeats_are_refused(several_ranks, name, equal):
    def act(comm):
        shard = scatter_dataset(list(zip(X, T)), comm, force_equal_length=equal)
        data = {
            "SubDataset": renga.datasets.SubDataset(shard, 0, len(shard)),
            "ConcatenatedDataset": renga.datasets.ConcatenatedDataset(shard, shard),
        }[name]
        return create_multi_node_evaluator(make_evaluator(data, 4), comm)()

    if equal:
        with pytest.raises(ValueError, match=f"got a {name} of a shard"):
            several_ranks(act)
    else:
        for result in several_ranks(act):
            assert result == pytest.approx(expected(), abs=1e-6)


def test_the_result_is_the_same_bits_on_every_rank(ranks):
    def act(comm):
        shard = scatter_dataset(list(zip(X, T)), comm, force_equal_length=False)
        return create_multi_node_evaluator(make_evaluator(shard, 4), comm)()

    results = ranks(act)
    assert all(result == results[0] for result in results)


class OwnEvaluate(extensions.Evaluator):
    """Overrides ``evaluate``."""

    def evaluate(self):
        examples = self.get_iterator("main").dataset
        return {"mean": float(np.mean([x for x, _ in examples]))}


def test_an_evaluator_with_its_own_evaluate_counts_by_its_examples(ranks):
    def act(comm):
        shard = scatter_dataset(list(zip(X, T)), comm)
        evaluator = make_evaluator(shard, 4, OwnEvaluate)
        return create_multi_node_evaluator(evaluator, comm)()

    for result in ranks(act):
        assert result["mean"] == pytest.approx(X.astype("float64").mean(), abs=1e-6)


class Counting(renga.Chain):
    """Reports a pair with a weight of its own, and what is no scalar."""

    def forward(self, x):
        renga.report({"ratio": (x.mean(), x.sum()), "all": x, "none": None}, self)
        renga.report({"large": F.max(x)}, self)


def test_values_may_bring_their_own_weight(ranks):
    data = np.arange(1.0, 11.0)

    def act(comm):
        shard = scatter_dataset(data, comm, force_equal_length=False)
        iterator = renga.iterators.SerialIterator(shard, 1, repeat=False, shuffle=False)
        evaluator = extensions.Evaluator(iterator, Counting())
        return create_multi_node_evaluator(evaluator, comm)()

    for result in ranks(act):
        assert result == {
            "main/ratio": pytest.approx((data**2).sum() / data.sum()),
            "main/large": pytest.approx(data.mean()),
        }
