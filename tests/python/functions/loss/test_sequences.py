"""Losses of sequences against sums over all labellings."""

import itertools

import numpy
import pytest
from scipy.special import log_softmax, logsumexp

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
steps = [rng.normal(size=(3, 4)) for _ in range(5)]
LABELS = numpy.array([[1, 2], [3, 3], [2, -1]], numpy.int32)
INPUT_LENGTHS = numpy.array([5, 4, 3], numpy.int32)
LABEL_LENGTHS = numpy.array([2, 2, 1], numpy.int32)


def labels_of(path, blank):
    """The labels of a path: repetitions merged, then blanks removed."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def ctc(xs, blank, lengths, label_lengths):
    scores = log_softmax(numpy.stack(xs), axis=2)
    losses = []
    for n, (length, count) in enumerate(zip(lengths, label_lengths)):
        wanted = list(LABELS[n, :count])
        ways = [
            scores[range(length), n, path].sum()
            for path in itertools.product(range(4), repeat=length)
            if labels_of(path, blank) == wanted
        ]
        losses.append(-logsumexp(ways))
    return numpy.array(losses)


@pytest.mark.parametrize("reduce", ["mean", "no"])
def test_connectionist_temporal_classification(reduce):
    def reference(*xs):
        losses = ctc(xs, 0, INPUT_LENGTHS, LABEL_LENGTHS)
        return losses.mean() if reduce == "mean" else losses

    check(
        lambda *xs: F.connectionist_temporal_classification(
            xs, LABELS, 0, INPUT_LENGTHS, LABEL_LENGTHS, reduce
        ),
        reference,
        *steps,
    )


def test_ctc_of_full_lengths_and_another_blank():
    labels = LABELS[:1] - 1
    loss = F.connectionist_temporal_classification(
        [x[:1, [1, 2, 3, 0]] for x in steps], labels, 3
    )
    expected = ctc([x[:1] for x in steps], 0, [5], [2])
    numpy.testing.assert_allclose(loss.array, expected.mean())


def test_ctc_of_impossible_labels_is_large_and_finite():
    loss = F.connectionist_temporal_classification(
        steps[:2], LABELS[1:2].repeat(3, 0), 0
    )
    assert 1e9 < float(loss.array) < 1e11


cost = rng.normal(size=(3, 3))
LENGTHS = (3, 2, 2, 1)  # sequences of 4, 3 and 1 labels
emissions = [rng.normal(size=(n, 3)) for n in LENGTHS]
labels = [rng.integers(0, 3, n).astype(numpy.int32) for n in LENGTHS]


def score(cost, sequence, path):
    pairs = sum(cost[a, b] for a, b in zip(path, path[1:]))
    return pairs + sum(x[label] for x, label in zip(sequence, path))


def sequences(columns):
    return [[c[b] for c in columns if b < len(c)] for b in range(LENGTHS[0])]


def every_way(cost, sequence):
    ways = list(itertools.product(range(3), repeat=len(sequence)))
    return ways, [score(cost, sequence, path) for path in ways]


@pytest.mark.parametrize("reduce", ["mean", "no"])
def test_crf1d(reduce):
    def reference(cost, *xs):
        losses = [
            logsumexp(every_way(cost, x)[1]) - score(cost, x, path)
            for x, path in zip(sequences(xs), sequences(labels))
        ]
        return numpy.mean(losses) if reduce == "mean" else numpy.array(losses)

    check(
        lambda cost, *xs: F.crf1d(cost, xs, labels, reduce), reference, cost, *emissions
    )


def test_argmax_crf1d():
    scores, path = F.argmax_crf1d(cost, emissions)
    assert [p.dtype for p in path] == [numpy.int32] * 4
    for best, found, x in zip(scores.array, sequences(path), sequences(emissions)):
        ways, all_scores = every_way(cost, x)
        assert tuple(found) == ways[numpy.argmax(all_scores)]
        assert best == pytest.approx(max(all_scores))

    def best_scores(cost, *xs):
        return numpy.array([max(every_way(cost, x)[1]) for x in sequences(xs)])

    check(lambda cost, *xs: F.argmax_crf1d(cost, xs)[0], best_scores, cost, *emissions)


def test_argmax_crf1d_compares_exact_sums_of_float16():
    # Rounded to float16 after each step, the scores would be 2048 and 2050.
    xs = [numpy.array([row], "e") for row in ([2048, 2046], [1, 1.5], [1, 1.5])]
    stays = numpy.array([[0, -1000], [-1000, 0]], "e")
    _, path = F.argmax_crf1d(stays, xs)  # 2050 and 2049
    assert [int(p[0]) for p in path] == [0, 0, 0]


def ctc_with(xs=steps, t=LABELS, blank=0, **options):
    return F.connectionist_temporal_classification(xs, t, blank, **options)


FAULTS = [
    (lambda: ctc_with(numpy.stack(steps)), TypeError),
    (lambda: ctc_with(blank="0"), TypeError),
    (lambda: ctc_with(blank=4), ValueError),
    (lambda: ctc_with(reduce="sum"), ValueError),
    (lambda: ctc_with(t=LABELS[:2]), InvalidType),
    (lambda: ctc_with(t=LABELS.astype("f")), InvalidType),
    (lambda: ctc_with([*steps, steps[0][:, :2]]), InvalidType),
    (lambda: F.crf1d(cost, emissions, labels, "sum"), ValueError),
    (lambda: F.crf1d(cost[:2], emissions, labels), InvalidType),
    (lambda: F.crf1d(cost, emissions[::-1], labels[::-1]), InvalidType),
    (lambda: F.crf1d(cost, emissions, labels[:3]), InvalidType),
    (lambda: F.argmax_crf1d(cost.astype("f"), emissions), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
