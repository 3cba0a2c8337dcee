"""Trainers, extensions, evaluators and updaters."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from cases.training.training import trainer_of
from chainer import reporter, training
from chainer.training import extensions, triggers


def case_trainer_entries():
    trainer = trainer_of(4)
    trainer.extend(extensions.LogReport(trigger=(2, "iteration")))
    trainer.extend(extensions.snapshot(filename="s"), trigger=(4, "iteration"))
    trainer.run()
    with np.load("out/s") as found:
        return sorted(set(found.files) - {"numpy_random_state"})  # renga's own


def case_extension_names():
    trainer = trainer_of(1)

    def f(trainer):
        pass

    trainer.extend(f)
    trainer.extend(f)
    trainer.extend(lambda trainer: None)
    trainer.extend(f, name="other")
    for name in ("f", "f_1", "other", "lambda", "<lambda>"):
        try:
            trainer.get_extension(name)
        except ValueError:
            return name
    return "all"


def case_extension_named_training():
    trainer_of(1).extend(lambda t: None, name="training")


def case_extension_twice():
    trainer_of(1).get_extension("nothing")


def case_extensions_in_order_of_priority():
    trainer, calls = trainer_of(2), []
    for name, priority in (("a", 1), ("b", 300), ("c", -5), ("d", 1)):
        trainer.extend(
            lambda t, name=name: calls.append(name),
            name=name,
            priority=priority,
            trigger=(1, "iteration"),
        )
    trainer.run()
    return calls


def case_made_extension():
    @training.make_extension(trigger=(2, "iteration"), priority=7, default_name="mine")
    def f(trainer):
        pass

    return f.trigger, f.priority, f.default_name


def case_extension_called_before_training():
    trainer, calls = trainer_of(2), []
    trainer.extend(
        lambda t: calls.append(t.updater.iteration),
        name="a",
        trigger=(2, "iteration"),
        call_before_training=True,
    )
    trainer.run()
    return calls


def case_trainer_runs_once():
    trainer = trainer_of(2)
    trainer.run()
    trainer.run()


def case_error_handlers():
    calls = []

    class Own(training.Extension):
        trigger = (1, "iteration")

        def __call__(self, trainer):
            raise KeyError("x")

        def on_error(self, trainer, exc, tb):
            calls.append(type(exc).__name__)

        def finalize(self):
            calls.append("finalize")

    trainer = trainer_of(2)
    trainer.extend(Own())
    try:
        trainer.run(show_loop_exception_msg=False)
    except KeyError:
        calls.append("raised")
    return calls


def case_observed_values():
    optimizer = chainer.optimizers.Adam(alpha=0.5)
    optimizer.setup(L.Linear(1, 1))
    trainer = trainer_of(2, optimizer=optimizer)
    trainer.extend(extensions.observe_value("x", lambda t: 3), trigger=(1, "iteration"))
    trainer.extend(extensions.observe_lr(), trigger=(1, "iteration"))
    trainer.run()
    return dict(trainer.observation)


def case_fail_on_nonnumber():
    model = L.Linear(1, 1)
    optimizer = chainer.optimizers.SGD().setup(model)
    model.W.array[...] = np.nan
    trainer = trainer_of(2, optimizer=optimizer)
    trainer.extend(extensions.FailOnNonNumber(), trigger=(1, "iteration"))
    trainer.run()


def case_parameter_statistics():
    model = L.Linear(2, 1, initialW=2)
    model.W.grad = np.ones((1, 2), "f")
    optimizer = chainer.optimizers.SGD().setup(model)
    trainer, found = trainer_of(1, optimizer=optimizer), {}
    trainer.extend(extensions.ParameterStatistics(model), trigger=(1, "iteration"))
    trainer.extend(
        lambda t: found.update(t.observation),
        name="note",
        trigger=(1, "iteration"),
        priority=-5,
    )
    trainer.run()
    return {key: found[key] for key in sorted(found)}


def case_evaluator():
    data = [(np.array([i], "f"), np.int32(i % 2)) for i in range(6)]
    iterator = chainer.iterators.SerialIterator(data, 4, repeat=False, shuffle=False)
    model = L.Classifier(lambda x: F.concat([x, 3 - x]))
    return extensions.Evaluator(iterator, model)()


def case_evaluator_names():
    iterator = chainer.iterators.SerialIterator([1], 1, repeat=False)
    evaluator = extensions.Evaluator(iterator, L.Classifier(L.Linear(1, 1)))
    return (
        evaluator.default_name,
        evaluator.trigger,
        evaluator.priority,
        evaluator.name,
        sorted(evaluator.get_all_targets()),
    )


def case_standard_updater():
    data = [np.array([i], "f") for i in range(6)]
    model = L.Linear(1, 1, initialW=1, nobias=True)
    model.forward = lambda x: F.sum(F.linear(x, model.W))
    optimizer = chainer.optimizers.SGD(0.1).setup(model)
    iterator = chainer.iterators.SerialIterator(data, 4, shuffle=False)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    found = []
    for _ in range(3):
        updater.update()
        found.append((updater.iteration, updater.epoch, updater.epoch_detail))
        found.append((updater.previous_epoch_detail, updater.is_new_epoch))
    return found, model.W.array


def case_updater_scales_the_loss():
    data = [np.array([2], "f") for i in range(2)]
    model = L.Linear(1, 1, initialW=1, nobias=True)
    model.forward = lambda x: F.sum(F.linear(x, model.W))
    optimizer = chainer.optimizers.SGD(1).setup(model)
    iterator = chainer.iterators.SerialIterator(data, 2)
    training.updaters.StandardUpdater(iterator, optimizer, loss_scale=8.0).update()
    return model.W.grad, model.W.array
