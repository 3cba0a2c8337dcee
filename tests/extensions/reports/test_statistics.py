"""ParameterStatistics, VariableStatisticsPlot and unchain_variables."""

import numpy
import pytest

import renga
import renga.links as L
from renga import testing
from renga.serializers import DictionarySerializer
from renga.training import extensions


@pytest.fixture
def link():
    with renga.using_config("dtype", numpy.float64):
        link = L.Linear(3, 4, initialW=numpy.arange(12.0).reshape(4, 3))
    link.W.grad = -numpy.ones((4, 3))
    link.b.cleargrad()
    return link


def run(extension, tmp_path, change=lambda i: None, iterations=4):
    trainer = testing.get_trainer_with_mock_updater((iterations, "iteration"), 2)
    trainer.out = str(tmp_path)
    log = extensions.LogReport(trigger=(1, "iteration"))
    trainer.extend(extension)
    trainer.extend(log)

    @trainer.extend
    @renga.training.make_extension(trigger=(1, "iteration"), priority=1000)
    def changes(trainer):
        change(trainer.updater.iteration)

    trainer.run()
    return log.log


def test_default_statistics(link, tmp_path):
    log = run(extensions.ParameterStatistics(link, trigger=(1, "iteration")), tmp_path)
    values = numpy.arange(12.0)
    for name, want in {
        "mean": values.mean(),
        "std": values.std(),
        "min": 0,
        "max": 11,
        "zeros": 1,
        "percentile/0": numpy.percentile(values, 0.13),
        "percentile/3": 5.5,
        "percentile/6": numpy.percentile(values, 99.87),
    }.items():
        assert log[0][f"None/W/data/{name}"] == pytest.approx(want)
    assert log[0]["None/W/grad/mean"] == -1
    assert "None/b/data/mean" in log[0] and "None/b/grad/mean" not in log[0]


def test_parameters_without_elements_have_no_statistics(link, tmp_path):
    with link.init_scope():
        link.nothing = renga.Parameter(numpy.zeros((0, 3)))
        link.scale = renga.Parameter(numpy.array(0.5))
    log = run(extensions.ParameterStatistics(link, trigger=(1, "iteration")), tmp_path)
    assert log[-1]["None/scale/data/max"] == 0.5
    assert not any("nothing" in name for name in log[-1])


def test_means_over_an_interval(link, tmp_path):
    def change(iteration):
        link.W.array[...] = iteration

    chain = renga.Chain(first=link)
    statistic = extensions.ParameterStatistics(
        [chain.first, chain],
        {"sum": numpy.sum},
        report_grads=False,
        prefix="mine",
        trigger=(2, "iteration"),
    )
    statistic.register_statistics("largest", numpy.max)
    log = run(statistic, tmp_path, change)
    assert "mine/first/W/data/sum" not in log[0]
    assert log[1]["mine/first/W/data/sum"] == 12 * 1.5
    assert log[3]["mine/None/first/W/data/largest"] == 3.5
    assert not any("grad" in key for key in log[3])


def test_parameters_with_nan(link, tmp_path):
    link.W.array[0, 0] = numpy.nan
    seen = []
    statistic = extensions.ParameterStatistics(
        link,
        {"sum": lambda x: seen.append(x) or 0},
        report_grads=False,
        trigger=(1, "iteration"),
        skip_nan_params=True,
    )
    log = run(statistic, tmp_path, iterations=1)
    assert numpy.isnan(log[0]["None/W/data/sum"]) and log[0]["None/b/data/sum"] == 0
    assert [x.shape for x in seen] == [(4,)]


def samples_of(plot):
    """The iterations and the statistics that a plot saves, in the order of time."""
    saved = DictionarySerializer()
    plot.serialize(saved)
    names = ("iterations", "data")
    iterations, data = (saved.target[f"_samples/{name}"] for name in names)
    count = min(int(saved.target["_samples/seen"]), len(iterations))
    order = numpy.argsort(iterations[:count])
    return iterations[:count][order], data[:count][order]


def test_plot(link, tmp_path):
    Figure = pytest.importorskip("matplotlib.figure").Figure
    rng = numpy.random.default_rng(0)
    plot = extensions.VariableStatisticsPlot(
        link, max_sample_size=50, trigger=(100, "iteration"), filename="spread.png"
    )

    def change(iteration):
        link.W.array[...] = rng.normal(size=(4, 3)) + iteration

    run(plot, tmp_path, change, iterations=100)
    assert (tmp_path / "spread.png").read_bytes()[:4] == b"\x89PNG"
    iterations, data = samples_of(plot)
    assert len(iterations) == 50 and (numpy.diff(iterations) > 0).all()
    assert 35 < iterations.mean() < 65
    # W's mean follows the iteration; b, which is 0, halves it.
    numpy.testing.assert_allclose(2 * data[:, 0, 0], iterations, atol=1.5)
    assert (data[:, 0, 2] <= data[:, 0, 6]).all()
    numpy.testing.assert_array_equal(data[:, 1, 0], -1)
    figure = Figure()
    plot._draw(figure)
    means, _, deviations, _, bands, _ = figure.axes  # of data and of gradients
    middle = 2 + data.shape[2] // 2 - 1
    for axes, column in ((means, 0), (deviations, 1), (bands, middle)):
        (line,) = axes.lines
        numpy.testing.assert_array_equal(line.get_xdata(), iterations)
        numpy.testing.assert_array_equal(line.get_ydata(), data[:, 0, column])
    assert [len(axes.collections) for axes in (means, deviations, bands)] == [0, 0, 4]


def test_a_plot_continues_after_a_resume(link, tmp_path):
    plots = [extensions.VariableStatisticsPlot(link.W, filename="w") for _ in range(2)]
    trainer = testing.get_trainer_with_mock_updater((4, "iteration"), 2)
    trainer.out = str(tmp_path)
    plots[0](trainer)
    renga.serializers.save_npz(tmp_path / "plot.npz", plots[0])
    renga.serializers.load_npz(tmp_path / "plot.npz", plots[1])
    for ours, theirs in zip(samples_of(plots[1]), samples_of(plots[0])):
        numpy.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="expected variables"):
        extensions.VariableStatisticsPlot([])


@pytest.mark.parametrize("keep", [True, False])
def test_graphs_are_freed(tmp_path, keep):
    x = renga.Variable(numpy.ones(3, "f4"))
    trainer = testing.get_trainer_with_mock_updater((1, "iteration"), 1)
    values = []

    @trainer.extend
    @renga.training.make_extension(trigger=(1, "iteration"), priority=300)
    def reports(trainer):
        values.append(x * 2)
        renga.report({"y": values[0]})

    @trainer.extend
    @renga.training.make_extension(trigger=(1, "iteration"), priority=0)
    def looks(trainer):
        values.append(getattr(trainer.observation["y"], "creator", None))

    trainer.extend(extensions.unchain_variables())
    with renga.using_config("keep_graph_on_report", keep):
        trainer.run()
    assert (values[1] is not None) == keep
    assert (values[0].creator is None) == keep
