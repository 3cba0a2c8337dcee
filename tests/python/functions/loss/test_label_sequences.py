"""Labels of sequences: indices and lengths of crf1d and CTC."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import _core
from renga.utils.type_check import InvalidType

random = numpy.random.RandomState(0)
STEPS = [renga.Variable(random.randn(4, 5).astype("f")) for _ in range(3)]


def test_crf1d_of_many_labels():
    """Pairs of labels are numbered up to K * K: more than uint8 holds."""
    k, rng = 40, numpy.random.RandomState(1)
    cost = rng.randn(k, k)
    xs = [rng.randn(3, k) for _ in range(3)]
    ys = [rng.randint(0, k, 3).astype("B") for _ in range(3)]
    score = sum(x[range(3), y] for x, y in zip(xs, ys))
    score += cost[ys[0], ys[1]] + cost[ys[1], ys[2]]
    alpha = xs[0]
    for x in xs[1:]:
        alpha = numpy.logaddexp.reduce(alpha[:, :, None] + cost, 1) + x
    expected = (numpy.logaddexp.reduce(alpha, 1) - score).mean()
    numpy.testing.assert_allclose(F.crf1d(cost, xs, ys).array, expected, rtol=1e-12)


class TestCtc:
    def loss(self, t, **lengths):
        lengths = {name: numpy.array(value) for name, value in lengths.items()}
        return F.connectionist_temporal_classification(
            STEPS, numpy.array(t), 0, reduce="no", **lengths
        ).array

    def test_values_after_the_last_label_are_ignored(self):
        t = [[1, 2], [3, 1], [2, 2], [4, 3]]
        padded = [[1, -1], [3, 1], [2, 99], [4, -7]]
        expected = self.loss(t, label_length=[1, 2, 1, 1])
        numpy.testing.assert_array_equal(
            self.loss(padded, label_length=[1, 2, 1, 1]), expected
        )

    @pytest.mark.parametrize("name", ["input_length", "label_length"])
    @pytest.mark.parametrize("length", [-1, 4, 2**40])
    def test_lengths(self, name, length):
        with pytest.raises(IndexError, match=name):
            self.loss([[1], [2], [3], [4]], **{name: [1, 1, 1, length]})


def test_no_steps_are_refused():
    labels = numpy.zeros((2, 1), "i4")
    with pytest.raises(InvalidType, match="temporal_classification: expected at least"):
        F.connectionist_temporal_classification([], labels, 0)


@pytest.mark.parametrize(
    "name, path, length, used",
    [
        ("path", [0, 4, 0], 2, 3),
        ("path", [0, -1, 0], 2, 3),
        ("lengths", [0, 1, 0], 3, 3),
        ("lengths", [0, 1, 0], -1, 3),
        ("path_lengths", [0, 1, 0], 2, 4),
    ],
)
def test_alignments_beyond_the_scores_are_refused(name, path, length, used):
    scores = renga.Variable(numpy.zeros((2, 1, 4)))
    with pytest.raises(IndexError, match=f"alignment_loss: expected {name} from 0"):
        _core.ops.alignment_loss(
            scores, numpy.array([path]), numpy.array([length]), numpy.array([used]), 0
        )
