"""Reporters and the statistics of what they collect."""

import threading

import numpy
import pytest

import renga
from renga import reporter as reporter_module
from renga.reporter import (
    DictSummary,
    Reporter,
    Summary,
    get_current_reporter,
    report,
    report_scope,
)
from renga.serializers import DictionarySerializer, NpzDeserializer


class Model:
    pass


def test_report_prefixes_the_observer():
    outer, inner = Model(), Model()
    reporter = Reporter()
    reporter.add_observer("main", outer)
    reporter.add_observers("main", [("/inner", inner)])
    observation = {}
    with reporter.scope(observation):
        report({"loss": 1}, outer)
        report({"loss": 2}, inner)
        report({"x": 3})
    assert observation == {"main/loss": 1, "main/inner/loss": 2, "x": 3}
    assert reporter.observation == {}


def test_report_by_an_unregistered_observer():
    with Reporter(), pytest.raises(KeyError, match="not registered"):
        report({"x": 1}, Model())


def test_report_without_a_reporter_is_dropped():
    report({"x": 1}, Model())
    with pytest.raises(IndexError):
        get_current_reporter()
    with pytest.raises(IndexError), report_scope({}):
        pass


def test_scopes_nest_and_survive_an_error():
    reporter = Reporter()
    outer, inner = {}, {}
    with reporter.scope(outer):
        with pytest.raises(RuntimeError), report_scope(inner):
            report({"x": 1})
            raise RuntimeError
        report({"x": 2})
        with Reporter() as other:
            assert get_current_reporter() is other
        assert get_current_reporter() is reporter
    assert (outer, inner) == ({"x": 2}, {"x": 1})


def test_reporters_are_local_to_a_thread():
    seen = []

    def work():
        report({"x": 2})
        with Reporter() as mine:
            report({"x": 3})
            seen.append(mine.observation)

    with Reporter() as reporter:
        report({"x": 1})
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert reporter.observation == {"x": 1}
    assert seen == [{"x": 3}]


@pytest.mark.parametrize("keep", [False, True])
def test_variables_keep_their_graph_on_request(keep):
    y = renga.Variable(numpy.ones((), "f")) * 2
    with renga.using_config("keep_graph_on_report", keep), Reporter() as reporter:
        report({"y": y})
    reported = reporter.observation["y"]
    assert (reported.creator is not None) == keep
    assert reported.array == 2


RNG = numpy.random.RandomState(0)
VALUES = RNG.normal(3, 2, 50)
WEIGHTS = RNG.uniform(0.1, 5, 50)


@pytest.mark.parametrize("dtype", ["e", "f", "d", "i"])
def test_summary_is_numpys_in_float64(dtype):
    values = (10 * VALUES).astype(dtype)
    summary = Summary()
    for value in values:
        summary.add(value)
    mean, std = summary.make_statistics()
    exact = values.astype(float)
    numpy.testing.assert_allclose(mean, exact.mean(), rtol=1e-13)
    numpy.testing.assert_allclose(std, exact.std(), rtol=1e-11)
    assert summary.compute_mean() == mean


def test_summary_with_weights():
    summary = Summary()
    for value, weight in zip(VALUES, WEIGHTS):
        summary.add(value, weight=weight)
    mean, std = summary.make_statistics()
    expected = numpy.average(VALUES, weights=WEIGHTS)
    variance = numpy.average((VALUES - expected) ** 2, weights=WEIGHTS)
    numpy.testing.assert_allclose(mean, expected, rtol=1e-13)
    numpy.testing.assert_allclose(std, numpy.sqrt(variance), rtol=1e-11)


def test_summary_of_arrays():
    rows = VALUES.reshape(10, 5)
    summary = Summary()
    for row in rows:
        summary.add(row)
    mean, std = summary.make_statistics()
    numpy.testing.assert_allclose(mean, rows.mean(0), rtol=1e-13)
    numpy.testing.assert_allclose(std, rows.std(0), rtol=1e-11)


def test_std_of_equal_values_is_no_nan():
    summary = Summary()
    for _ in range(3):
        summary.add(0.1)
    assert 0 <= summary.make_statistics()[1] < 1e-8


def test_summary_refuses():
    with pytest.raises(ZeroDivisionError):
        Summary().compute_mean()
    with pytest.raises(TypeError, match="expected a number"):
        Summary().add("x")


def test_dict_summary_takes_scalars_only():
    summary = DictSummary()
    summary.add(
        {
            "float": 1.0,
            "bool": True,
            "array": numpy.array(3, "f"),
            "variable": renga.Variable(numpy.array(4, "f")),
            "pair": (5.0, 2),
            "vector": numpy.ones(3),
            "one": numpy.ones(1),
            "none": None,
            "list": [1, 2],
        }
    )
    summary.add(
        {"float": 2.0, "pair": (numpy.array(8.0), renga.Variable(numpy.ones(())))}
    )
    assert summary.compute_mean() == {
        "float": 1.5,
        "bool": 1,
        "array": 3,
        "variable": 4,
        "pair": 6,
    }
    statistics = summary.make_statistics()
    assert statistics["float.std"] == 0.5
    numpy.testing.assert_allclose(statistics["pair.std"], numpy.std([5, 5, 8]))


@pytest.mark.parametrize(
    "value, error",
    [("x", TypeError), (("x", 1), TypeError), ((1.0, numpy.ones(2)), ValueError)],
)
def test_dict_summary_refuses(value, error):
    with pytest.raises(error):
        DictSummary().add({"k": value})


def test_summaries_resume():
    def add(summary, values):
        for value in values:
            summary.add({"a": value, "b/c": (value, 2)})

    summary, uninterrupted = DictSummary(), DictSummary()
    add(summary, VALUES[:20])
    add(uninterrupted, VALUES)
    saved = DictionarySerializer()
    summary.serialize(saved)
    restored = DictSummary()
    restored.add({"gone": 1.0})
    restored.serialize(NpzDeserializer(saved.target))
    add(restored, VALUES[20:])
    assert restored.make_statistics() == uninterrupted.make_statistics()


def test_module_exports():
    assert renga.Reporter is reporter_module.Reporter
    assert renga.report is reporter_module.report
