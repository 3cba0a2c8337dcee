"""Invalid arguments of optimizers, hooks, iterators, data sets and bound functions."""

import re
import warnings

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import datasets, iterators, optimizer_hooks, optimizers, testing
from renga.communicators import local
from renga.distributed import create_multi_node_optimizer, scatter_dataset
from renga.serializers.npz import serialize

data = [(numpy.ones(3, "f"), numpy.int32(1))] * 5


def _updated(optimizer, model=None):
    model = model or L.Linear(3, 2)
    optimizer.setup(model)
    model.cleargrads()
    F.sum(model(numpy.ones((4, 3), "f"))).backward()
    optimizer.update()
    return model


OPTIMIZERS = sorted(
    name
    for name, cls in vars(optimizers).items()
    if isinstance(cls, type) and issubclass(cls, renga.GradientMethod)
)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_hyperparameters_are_numbers(name):
    cls = getattr(optimizers, name)
    for wrong in (None, "0.1", [0.1], 1j, renga.Variable(numpy.array(0.1))):
        with pytest.raises(TypeError, match="expected a number"):
            cls(wrong)
    with pytest.raises(ValueError, match="nan"):
        cls(float("nan"))
    (first, *_) = cls().hyperparam.get_dict()
    for right in (0.5, numpy.float32(0.5), numpy.array(0.5)):
        setattr(cls(), first, right)
    with pytest.raises(TypeError, match=f"{name}: {first}: expected a number"):
        setattr(cls(), first, None)


@pytest.mark.parametrize("beta", [1, 1.5, -0.1])
def test_betas_of_adam(beta):
    for name in ("beta1", "beta2"):
        with pytest.raises(ValueError, match=name):
            optimizers.Adam(**{name: beta})


def test_hyperparameters_of_user_defined_optimizers_are_not_checked():
    class Mine(renga.GradientMethod):
        schedule = renga.optimizer.HyperparameterProxy("schedule")

        def __init__(self, schedule=None):
            super().__init__()
            self.schedule = schedule

    assert Mine("cosine").schedule == "cosine"


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_without_a_model(name):
    optimizer = getattr(optimizers, name)()
    for call in (
        optimizer.update,
        lambda: optimizer.update(lambda: renga.Variable(numpy.ones(()))),
        lambda: optimizer.serialize(renga.serializers.DictionarySerializer()),
    ):
        with pytest.raises(RuntimeError, match=r"setup\(model\)"):
            call()


def test_loss_functions_return_variables():
    optimizer = optimizers.SGD().setup(L.Linear(3, 2))
    for wrong in (None, 3.0, numpy.array(3.0)):
        with pytest.raises(TypeError, match="expected a Variable"):
            optimizer.update(lambda wrong=wrong: wrong)


def test_first_update_without_backward_warns():
    optimizer = optimizers.SGD().setup(L.Linear(3, 2))
    with pytest.warns(UserWarning, match="/W is NaN.*cleargrads"):
        optimizer.update()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _updated(optimizers.SGD())


def test_a_link_with_two_names_is_updated_once():
    link = L.Linear(3, 2)
    before = link.W.array.copy()
    model = renga.ChainList(link, link)
    optimizer = optimizers.SGD(1.0).setup(model)
    optimizer.add_hook(optimizer_hooks.WeightDecay(0.5))
    model.cleargrads()
    F.sum(link(numpy.ones((4, 3), "f"))).backward()
    optimizer.update()
    numpy.testing.assert_allclose(link.W.array, before - 4 - 0.5 * before, 1e-5, 1e-6)
    assert link.W.update_rule.t == 1
    assert len(list(model.params())) == 2
    assert len(list(model.namedparams())) == 4


HOOKS = {
    optimizer_hooks.WeightDecay: (),
    optimizer_hooks.Lasso: (),
    optimizer_hooks.GradientClipping: (-1,),
    optimizer_hooks.GradientNoise: (-1,),
    optimizer_hooks.GradientLARS: (),
}


@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_take_numbers(hook):
    for wrong in (None, "a"):
        with pytest.raises(TypeError, match="expected a number"):
            hook(wrong)
    for wrong in (float("nan"), *HOOKS[hook]):
        with pytest.raises(ValueError, match="expected a number"):
            hook(wrong)
    with pytest.raises(TypeError, match="the class"):
        optimizers.SGD().add_hook(hook)


def test_bounds_of_hard_clipping():
    with pytest.raises(ValueError, match="lower_bound <= upper_bound"):
        optimizer_hooks.GradientHardClipping(1, -1)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf")])
def test_loss_scales(scale):
    with pytest.raises(ValueError):
        optimizers.SGD().loss_scaling(scale=scale)
    with pytest.raises(TypeError):
        optimizers.SGD().loss_scaling(scale="dynamic")


@pytest.mark.parametrize(
    "cls",
    [
        iterators.SerialIterator,
        iterators.MultithreadIterator,
        iterators.MultiprocessIterator,
    ],
)
def test_sizes_of_batches(cls):
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="batch_size"):
            cls(data, wrong)
    for wrong in (2.5, None, "2"):
        with pytest.raises(TypeError, match="batch_size"):
            cls(data, wrong)
    assert cls(data, numpy.int64(2)).batch_size == 2


def test_numbers_of_workers():
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="n_threads"):
            iterators.MultithreadIterator(data, 2, n_threads=wrong)
    with pytest.raises(ValueError, match="n_processes"):
        iterators.MultiprocessIterator(data, 2, n_processes=-1)
    # There are as many as there are cores, as with None.
    assert iterators.MultiprocessIterator(data, 2, n_processes=0).n_processes > 0


def test_subsets_of_data_sets():
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            datasets.split_dataset_n(data, wrong)
        with pytest.raises(ValueError, match="at least 1"):
            datasets.get_cross_validation_datasets(data, wrong)
    with pytest.raises(ValueError, match="indices below 3"):
        datasets.split_dataset([1, 2, 3], 2, [0, 1, 7])
    with pytest.raises(ValueError, match="indices below 3"):
        datasets.SubDataset([1, 2, 3], 0, 2, [-4, 1, 0])


@pytest.mark.parametrize(
    "batch",
    [
        [(1, 2), (1,)],
        [(1,), (1, 2)],
        [(1, 2), 3],
        [{"a": 1}, {"b": 1}],
        [{"a": 1}, {"a": 1, "b": 1}],
        [{"a": 1}, (1,)],
        [numpy.ones(2), 3],
        [numpy.ones(2), numpy.ones(3)],
    ],
)
def test_examples_of_different_structure(batch):
    with pytest.raises(ValueError, match="concat_examples: expected"):
        renga.dataset.concat_examples(batch)


def _trainer(tmp_path, stop=(1, "epoch"), extensions=(), **named):
    model = L.Classifier(L.Linear(3, 2))
    optimizer = optimizers.SGD(0.1).setup(model)
    updater = renga.training.StandardUpdater(
        iterators.SerialIterator(data, 2), optimizer
    )
    trainer = renga.training.Trainer(updater, stop, out=str(tmp_path))
    for extension in extensions:
        trainer.extend(extension, **named)
    return trainer


def test_triggers(tmp_path):
    triggers = renga.training.triggers
    for wrong in (None, "1"):
        with pytest.raises(TypeError, match="expected a number"):
            _trainer(tmp_path, (wrong, "epoch"))
        with pytest.raises(TypeError, match="expected a number"):
            triggers.TimeTrigger(wrong)
    for wrong in (float("nan"), 0, -1):
        with pytest.raises(ValueError, match="expected a"):
            _trainer(tmp_path, (wrong, "epoch"))
        with pytest.raises(ValueError, match="expected a"):
            triggers.TimeTrigger(wrong)
    with pytest.raises(ValueError, match="mode"):
        triggers.EarlyStoppingTrigger(mode="largest")


@pytest.mark.parametrize(
    ("name", "values", "fires"),
    [
        ("MinValueTrigger", "nan 3 nan 2 5", "2 4"),
        ("MaxValueTrigger", "nan 3 nan 2 5", "2 5"),
        ("MaxValueTrigger", "nan nan", ""),
    ],
)
def test_nan_is_never_the_best(name, values, fires):
    trigger = getattr(renga.training.triggers, name)("loss", (1, "iteration"))
    trainer = testing.get_trainer_with_mock_updater((9, "iteration"), 9)
    fired = []
    for i, value in enumerate(values.split(), 1):
        trainer.updater.update()
        trainer.observation = {"loss": float(value)}
        if trigger(trainer):
            fired.append(str(i))
    assert " ".join(fired) == fires


def test_evaluator_of_an_iterator_that_never_ends():
    iterator = iterators.SerialIterator(data, 2)
    with pytest.warns(UserWarning, match="repeat=True"):
        evaluator = renga.training.extensions.Evaluator(
            iterator, L.Classifier(L.Linear(3, 2))
        )
    with pytest.raises(ValueError, match="repeat=True"):
        evaluator()


def test_components_of_a_training_run(tmp_path):
    iterator = iterators.SerialIterator(data, 2)
    updaters = renga.training.updaters
    optimizer = optimizers.SGD().setup(L.Linear(3, 2))
    for wrong in (None, data, optimizer):
        with pytest.raises(TypeError, match="expected an iterator as 'main'"):
            updaters.StandardUpdater(wrong, optimizer)
    for wrong in (None, iterator, L.Linear(3, 2)):
        with pytest.raises(TypeError, match="expected an optimizer as 'main'"):
            updaters.StandardUpdater(iterator, wrong)
    updater = updaters.StandardUpdater(iterator, optimizers.SGD())
    with pytest.raises(RuntimeError, match="setup"):
        renga.training.Trainer(updater, out=str(tmp_path))
    with pytest.raises(TypeError, match="the class LogReport"):
        _trainer(tmp_path, extensions=[renga.training.extensions.LogReport])


def test_shifts():
    extensions = renga.training.extensions
    for wrong, error in ((0, ValueError), (-1, ValueError), (None, TypeError)):
        with pytest.raises(error, match="step"):
            extensions.StepShift("lr", 0.1, wrong)
        with pytest.raises(error, match="max_count"):
            extensions.PolynomialShift("lr", 1, wrong)
        with pytest.raises(error, match="max_count"):
            extensions.CosineShift("lr", wrong)
        with pytest.raises(error, match="max_count"):
            extensions.OneCycleShift("lr", wrong)
    with pytest.raises(ValueError, match="warmup"):
        extensions.OneCycleShift("lr", 10, 1.0)
    with pytest.raises(ValueError, match="time_range"):
        extensions.LinearShift("lr", (1, 0), (5, 3))


def test_a_single_key_is_a_list_with_one_element(tmp_path, capsys):
    extensions = renga.training.extensions
    report = extensions.LogReport("main/loss")
    trainer = _trainer(tmp_path, extensions=[report, extensions.PrintReport("epoch")])
    trainer.run()
    assert set(report.log[0]) == {"main/loss", "epoch", "iteration", "elapsed_time"}
    assert capsys.readouterr().out.split() == ["epoch", "1"]


def test_lists_of_different_lengths():
    longer = renga.ChainList(L.Linear(3, 2), L.Linear(2, 2))
    shorter = renga.ChainList(L.Linear(3, 2))
    for a, b in ((longer, shorter), (shorter, longer)):
        for method in (a.copyparams, a.addgrads):
            with pytest.raises(ValueError, match=f"expected {len(a)} links"):
                method(b)


@pytest.mark.parametrize("name", ["HeNormal", "LeCunNormal", "GlorotNormal"])
def test_initializers_of_empty_arrays(name):
    assert renga.Parameter(getattr(renga.initializers, name)(), (2, 0)).shape == (2, 0)


@pytest.mark.parametrize(
    "name, expected, call",
    [
        ("serializer", "an object with a serialize", lambda x, _: serialize(x)),
        ("scatter_dataset", "a data set", scatter_dataset),
        ("bcast_data", "a link", lambda x, comm: comm.bcast_data(x)),
        (
            "multi_node_mean_grad",
            "a link",
            lambda x, comm: comm.multi_node_mean_grad(x),
        ),
        ("create_multi_node_optimizer", "an optimizer", create_multi_node_optimizer),
        ("Normal: scale", "a number", lambda x, _: renga.initializers.Normal([x])),
    ],
)
def test_a_number_in_place_of_another_object(name, expected, call):
    with pytest.raises(TypeError, match=f"^rank 0: {name}: expected {expected}.*, got"):
        local.run(lambda comm: call(5, comm), ranks=1)


X, LABELS, BITS = numpy.ones((2, 3), "f"), [0, 2], [[1, 0, 1], [0, 1, 1]]


@pytest.mark.parametrize(
    "call",
    [
        lambda t: F.softmax_cross_entropy(X, t),
        lambda t: F.label_smoothing_cross_entropy(X, t),
        lambda t: F.hinge(X, t),
        lambda t: F.accuracy(X, t),
        lambda t: F.classification_summary(X, t),
        lambda t: F.f1_score(X, t),
        lambda t: F.contrastive(X, X, t),
        lambda t: F.permutate(X, t),
        lambda t: F.sigmoid_cross_entropy(X, BITS if isinstance(t, list) else t),
        lambda t: F.binary_accuracy(X, BITS if isinstance(t, list) else t),
        lambda t: F.connectionist_temporal_classification([X, X], t, 0),
        lambda t: L.Classifier(lambda x: x)(X, t),
    ],
)
@pytest.mark.parametrize("labels", [LABELS, tuple(LABELS), None, "12"])
def test_labels_are_arrays(call, labels):
    with pytest.raises(TypeError, match=f"as an array, got {type(labels).__name__}$"):
        call(labels)


def test_arguments_of_bound_functions():
    x = numpy.ones((2, 3), "f")
    wrong = [("sum", "0"), ("logsumexp", 1.0), ("argmax", (0, 1)), ("softmax", None)]
    for name, axis in wrong:
        with pytest.raises(TypeError) as error:
            getattr(F, name)(x, axis=axis)
        text = str(error.value)
        assert re.match(rf"{name}: expected \(x: .*, axis: ", text), text
        assert text.endswith(f", got (numpy.ndarray of float32 (2, 3), axis={axis!r})")
    with pytest.raises(TypeError, match=r"^backward: .*2, 3\), loss_scale='a'\)$"):
        renga.Variable(x).backward(loss_scale="a")


def test_a_constructor_says_what_it_takes():
    with pytest.raises(TypeError, match=r"expected \(data: .*grad: .*\), got .*a=True"):
        renga.Variable(numpy.ones(2, "f"), a=True)
