"""Errors that name what the caller may have meant."""

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.training import extensions

X = numpy.ones((2, 3), "f")


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        (L, "Conv2d", "Convolution2D"),
        (L, "Conv2D", "Convolution2D"),
        (L, "linear", "Linear"),
        (L, "ReLU", "F.relu"),
        (renga.optimizers, "Adamm", "Adam"),
        (renga.datasets, "get_mnst", "get_mnist"),
        (renga.iterators, "SerialIterater", "SerialIterator"),
        (extensions, "LogReprot", "LogReport"),
        (renga, "distribted", "distributed"),
        (renga.config, "trian", "train"),
        (renga.transforms, "RandomCropp", "RandomCrop"),
        (renga.optimizer_hooks, "GradientClip", "GradientClipping"),
        (renga.training, "StandartUpdater", "StandardUpdater"),
        (renga.training.triggers, "EarlyStopTrigger", "EarlyStoppingTrigger"),
        (renga.initializers, "HeNorml", "HeNormal"),
        (renga.serializers, "save_npy", "save_npz"),
    ],
)
def test_unknown_names(module, name, meant):
    with pytest.raises(AttributeError, match=f"{name!r}; did you mean {meant!r}"):
        getattr(module, name)


def test_names_of_every_step_are_cached():
    # CPython does not cache the attributes of a module that has a __getattr__.
    assert "__getattr__" not in vars(F)


def test_names_unlike_any_other_get_no_suggestion():
    with pytest.raises(AttributeError) as raised:
        L.xyzzy_quux  # noqa: B018
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: L.Convolution2D(3, 4, 3, padding=1),
            "Convolution2D() got unexpected keyword argument(s) 'padding'; "
            "did you mean 'pad'?",
        ),
        (lambda: F.dropout(X, p=0.5), "'p'; did you mean 'ratio'?"),
        (lambda: renga.optimizers.SGD(learning_rate=1), "did you mean 'lr'?"),
        (lambda: renga.optimizers.Adam(learning_rate=1), "did you mean 'alpha'?"),
        (lambda: renga.optimizers.Adam(betas=(0.9, 0.9)), "'beta1 and beta2'"),
        (lambda: renga.optimizers.Adam(lr=1), "learning rate is called alpha, got lr"),
        (lambda: renga.optimizers.SGD(weight_decay=1), "WeightDecay"),
    ],
)
def test_unknown_arguments(call, message):
    with pytest.raises(TypeError) as raised:
        call()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: F.maximum(renga.Variable(X), 0.0),
            "maximum: expected the second operand of dtype float32 as the first, "
            "got float64",
        ),
        (
            lambda: F.minimum(numpy.float64(0), renga.Variable(X)),
            "minimum: expected the first operand of dtype float32 as the second, "
            "got float64",
        ),
        (
            lambda: F.where(X > 0, renga.Variable(X), 0.0),
            "where: expected the second operand of dtype float32",
        ),
        (
            lambda: F.concat([X, X, X.astype("f8")]),
            "concat: expected xs[2] of dtype float32 as xs[0], got float64",
        ),
        (
            lambda: L.Linear(3, 4)(numpy.ones((2, 5, 3), "f")),
            "with n_batch_axes=1; n_batch_axes=2 would fit",
        ),
    ],
)
def test_the_argument_that_does_not_fit_is_named(call, message):
    with pytest.raises(renga.utils.type_check.InvalidType) as raised:
        call()
    assert message in str(raised.value)


def test_hooks_need_a_model():
    hook = renga.optimizer_hooks.WeightDecay(0.1)
    with pytest.raises(RuntimeError, match=r"SGD.add_hook: expected setup\(model\)"):
        renga.optimizers.SGD().add_hook(hook)


def test_print_report_without_log_report(tmp_path):
    model = L.Classifier(L.Linear(3, 4))
    optimizer = renga.optimizers.SGD().setup(model)
    iterator = renga.iterators.SerialIterator([(X[0], numpy.int32(0))], 1)
    updater = renga.training.StandardUpdater(iterator, optimizer)
    trainer = renga.training.Trainer(updater, (1, "epoch"), out=tmp_path)
    trainer.extend(extensions.PrintReport(["epoch"]))
    with pytest.raises(ValueError, match=r"PrintReport: expected .*LogReport\(\)"):
        trainer.run()
    assert optimizer.t == 0  # said before the first update
