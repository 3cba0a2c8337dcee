"""Tables of links, counted by hand."""

import random

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, 4, 3, pad=1)
            self.fc = L.Linear(None, 10)
            self.spare = L.Linear(7, 2)
            self.scale = renga.Parameter(numpy.ones(10, "f"))

    def forward(self, x):
        h = F.relu(self.conv(x))
        return self.fc(h) * F.broadcast_to(self.scale, (len(x), 10))


def test_rows():
    summary = renga.model_summary(Net(), numpy.ones((2, 3, 6, 5), "f"))
    assert [(r.name, r.kind, r.shape, r.parameters) for r in summary.rows] == [
        ("/conv", "Convolution2D", (2, 4, 6, 5), 4 * 3 * 9 + 4),
        ("/fc", "Linear", (2, 10), 4 * 6 * 5 * 10 + 10),
        ("/", "Net", (2, 10), 10),
    ]
    assert summary.unused == 7 * 2 + 2
    assert summary.parameters == 112 + 1210 + 10 + 16
    assert "1,348 parameters, 16 of links that did not run" in str(summary)
    assert "<td>/conv</td><td>Convolution2D</td>" in summary._repr_html_()


def test_shared_links_count_once():
    link = L.Linear(3, 3)
    model = renga.ChainList(link)
    model.forward = lambda x: link(link(x))
    summary = renga.model_summary(model, numpy.ones((1, 3), "f"))
    assert [row.parameters for row in summary.rows] == [12, 0, 0]


def test_functions_are_refused():
    with pytest.raises(TypeError, match="expected a Link, got function"):
        renga.model_summary(lambda x: x, 1)


def test_seed_everything_repeats_what_is_random():
    def draw():
        renga.seed_everything(5)
        x = numpy.ones((4, 50), "f")
        model = L.Linear(50, 20)
        return random.random(), F.dropout(model(x)).array

    (a, x), (b, y) = draw(), draw()
    assert a == b
    numpy.testing.assert_array_equal(x, y)
    assert a == random.Random(5).random()


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), (2**32, ValueError)])
def test_wrong_seeds(seed, error):
    with pytest.raises(error, match="seed_everything"):
        renga.seed_everything(seed)
