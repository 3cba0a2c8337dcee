"""Triggers, extensions, snapshot writers and reporters, on a counting updater."""

import io
import itertools
import os
import threading
import time

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import reporter, training
from chainer.training import extensions, triggers
from chainer.training.extensions import (
    computational_graph,
    snapshot_writers,
    variable_statistics_plot,
)
from chainer.training.updaters import multiprocess_parallel_updater


class Counting:
    """An updater whose iterations take nothing; reports what it is given."""

    def __init__(self, per_epoch=4, observations=None, optimizer=None):
        self.per_epoch, self.iteration = per_epoch, 0
        self.observations = observations or (lambda i: {})
        self.optimizer = optimizer

    @property
    def epoch(self):
        return self.iteration // self.per_epoch

    @property
    def epoch_detail(self):
        return self.iteration / self.per_epoch

    @property
    def previous_epoch_detail(self):
        return max(self.iteration - 1, 0) / self.per_epoch

    @property
    def is_new_epoch(self):
        return self.iteration % self.per_epoch == 0

    def update(self):
        self.iteration += 1
        reporter.report(self.observations(self.iteration))

    def get_optimizer(self, name):
        return self.optimizer

    def get_all_optimizers(self):
        return {} if self.optimizer is None else {"main": self.optimizer}

    def connect_trainer(self, trainer):
        pass

    def finalize(self):
        pass

    def serialize(self, serializer):
        self.iteration = serializer("iteration", self.iteration)


def trainer_of(n=8, unit="iteration", **options):
    return training.Trainer(Counting(**options), (n, unit), out="out")


def fired(trigger, n=12, **options):
    """The iterations at which a trigger fires."""
    trainer, found = trainer_of(n, **options), []

    def note(trainer):
        if trigger(trainer):
            found.append(trainer.updater.iteration)

    trainer.extend(note, trigger=(1, "iteration"), call_before_training=False)
    trainer.run()
    return found


def resumed(make, at, n=12, **options):
    """The same, saved and loaded into a new trigger at an iteration."""
    first, second, found = make(), make(), []
    trainer = trainer_of(n, **options)

    def note(trainer):
        i = trainer.updater.iteration
        if i == at and hasattr(first, "serialize"):
            state = {}
            s = chainer.serializers.DictionarySerializer(state)
            hit = first(trainer)
            first.serialize(s)
            second.serialize(chainer.serializers.NpzDeserializer(state))
        else:
            hit = (first if i <= at else second)(trainer)
        if hit:
            found.append(i)

    trainer.extend(note, trigger=(1, "iteration"))
    trainer.run()
    return found


def loss(i):
    return {
        "loss": [3.0, 2.0, 2.5, 1.0, 1.5, 1.2, 1.1, 1.4, 0.9, 1.0, 1.1, 1.3][i % 12]
    }


TRIGGERS = {
    "interval 2 iterations": lambda: triggers.IntervalTrigger(2, "iteration"),
    "interval 1 epoch": lambda: triggers.IntervalTrigger(1, "epoch"),
    "interval half an epoch": lambda: triggers.IntervalTrigger(0.5, "epoch"),
    "interval 1.5 epochs": lambda: triggers.IntervalTrigger(1.5, "epoch"),
    "manual iterations": lambda: triggers.ManualScheduleTrigger([2, 3, 7], "iteration"),
    "manual iteration": lambda: triggers.ManualScheduleTrigger(5, "iteration"),
    "manual epochs": lambda: triggers.ManualScheduleTrigger([0.5, 2], "epoch"),
    "once": lambda: triggers.OnceTrigger(),
    "once on resume": lambda: triggers.OnceTrigger(call_on_resume=True),
    "min value": lambda: triggers.MinValueTrigger("loss", (1, "epoch")),
    "max value": lambda: triggers.MaxValueTrigger("loss", (2, "iteration")),
    "best value": lambda: triggers.BestValueTrigger(
        "loss", lambda best, new: new < best - 0.5, (2, "iteration")
    ),
    "early stopping": lambda: triggers.EarlyStoppingTrigger(
        check_trigger=(1, "iteration"), monitor="loss", patience=2
    ),
    "early stopping max": lambda: triggers.EarlyStoppingTrigger(
        check_trigger=(1, "iteration"), monitor="loss", patience=2, mode="max"
    ),
    "early stopping of accuracy": lambda: triggers.EarlyStoppingTrigger(
        check_trigger=(1, "iteration"), monitor="main/accuracy", patience=2
    ),
    "early stopping patients": lambda: triggers.EarlyStoppingTrigger(
        check_trigger=(1, "iteration"), monitor="loss", patients=2
    ),
}


def trigger_cases():
    found = {}
    for name, make in TRIGGERS.items():
        for per_epoch in (4, 3):
            found[f"{name}, {per_epoch} iterations an epoch"] = (
                lambda make=make, n=per_epoch: fired(
                    make(), per_epoch=n, observations=loss
                )
            )
        for at in (1, 2, 4, 5):
            found[f"{name}, resumed at {at}"] = lambda make=make, at=at: resumed(
                make, at, observations=loss
            )
    return found


def shifted(make, n=6, attribute="lr", **options):
    """A hyperparameter after every iteration."""
    optimizer = chainer.optimizers.SGD(0.5)
    optimizer.setup(L.Linear(2, 1))
    trainer, found = trainer_of(n, optimizer=optimizer, **options), []
    trainer.extend(make(optimizer), trigger=(1, "iteration"))
    trainer.extend(
        lambda trainer: found.append(getattr(optimizer, attribute)),
        name="note",
        trigger=(1, "iteration"),
        priority=-200,
    )
    trainer.run()
    return found


SHIFTS = {
    "ExponentialShift('lr', .5)": lambda o: extensions.ExponentialShift("lr", 0.5),
    "ExponentialShift init": lambda o: extensions.ExponentialShift("lr", 0.5, init=2.0),
    "ExponentialShift target": lambda o: extensions.ExponentialShift(
        "lr", 0.5, target=0.2, optimizer=o
    ),
    "ExponentialShift grows": lambda o: extensions.ExponentialShift(
        "lr", 2, target=1.5
    ),
    "ExponentialShift below 0": lambda o: extensions.ExponentialShift("lr", -1),
    "InverseShift": lambda o: extensions.InverseShift("lr", 0.5, 1),
    "InverseShift target": lambda o: extensions.InverseShift("lr", 0.5, 2, target=0.3),
    "LinearShift": lambda o: extensions.LinearShift("lr", (1, 0.2), (2, 5)),
    "LinearShift to 0": lambda o: extensions.LinearShift("lr", (1, 0), (0, 3)),
    "MultistepShift": lambda o: extensions.MultistepShift("lr", 0.1, [2, 4], init=1),
    "PolynomialShift": lambda o: extensions.PolynomialShift("lr", 2, 5),
    "PolynomialShift init": lambda o: extensions.PolynomialShift("lr", 1, 4, init=2),
    "StepShift": lambda o: extensions.StepShift("lr", 0.5, 2),
    "StepShift target": lambda o: extensions.StepShift("lr", 0.5, 2, target=0.2),
    "WarmupShift": lambda o: extensions.WarmupShift("lr", 0.1, 3, 1.0),
}


def logged(trigger=(1, "epoch"), n=8, observations=loss, **options):
    trainer = trainer_of(n, observations=observations)
    log = extensions.LogReport(trigger=trigger, **options)
    trainer.extend(log)
    trainer.run()
    for entry in log.log:
        entry.pop("elapsed_time")
    return log.log, sorted(os.listdir("out"))


GENERATED = {
    **trigger_cases(),
    **{name: lambda make=make: shifted(make) for name, make in SHIFTS.items()},
}

EXPRESSIONS = """
triggers.IntervalTrigger(1, 'hour')
triggers.ManualScheduleTrigger([1], 'hour')
triggers.TimeTrigger(0)
triggers.EarlyStoppingTrigger(mode='median')
chainer.training.get_trigger(None)(None)
chainer.training.get_trigger((1, 'epoch')).unit
chainer.training.get_trigger('epoch')
chainer.training.get_trigger(5)
training.trigger.IntervalTrigger(3, 'epoch').period
extensions.observe_lr().name, extensions.observe_lr().trigger
logged()
logged((3, 'iteration'))
logged(keys=['loss'])
logged(keys=['none'])
logged(filename='other')
logged(filename=None)
logged(log_name='old')
logged(postprocess=lambda stats: stats.update(twice=2 * stats['loss']))
logged(observations=lambda i: {'loss': np.float32(i), 'text': 'no number'})
logged(observations=lambda i: {'loss': i} if i % 4 == 1 else {'other': 1.})
computational_graph.is_return_code_zero(['true'])
computational_graph.is_return_code_zero(['false'])
computational_graph.is_return_code_zero(['no such command'])
type(computational_graph.is_graphviz_available()).__name__
multiprocess_parallel_updater.size_num_grads(L.Linear(2, 3))
multiprocess_parallel_updater.gather_grads(L.Linear(2, 3))
multiprocess_parallel_updater.gather_params(L.Linear(2, 3))
extensions.PlotReport.available()
extensions.VariableStatisticsPlot.available()
extensions.PolynomialShift('lr', 1, 5).trigger
extensions.snapshot(num_retain=2).priority
extensions.snapshot().default_name, extensions.snapshot().trigger
extensions.snapshot(savefun=print, writer=snapshot_writers.ThreadWriter())
extensions.snapshot(unknown=1)
extensions.snapshot(condition=5)
extensions.snapshot(writer=5)
snapshot_writers.QueueWriter()
snapshot_writers.StandardWriter()('f', '.', {})
snapshot_writers.Writer()('f', '.', {})
issubclass(snapshot_writers.ThreadWriter, snapshot_writers.StandardWriter)
issubclass(snapshot_writers.ProcessQueueWriter, snapshot_writers.QueueWriter)
[k.__name__ for k in type.mro(extensions.LogReport)][1]
reporter.Summary().compute_mean()
reporter.DictSummary().compute_mean()
reporter.DictSummary().make_statistics()
chainer.Reporter().observation
chainer.report({'a': 1})
chainer.report({'a': 1}, L.Linear(1, 1))
"""


def summary(*values):
    found = chainer.reporter.Summary()
    for value in values:
        found.add(value)
    return found


def case_summary():
    return summary(1.0, 2.0, 4.0).compute_mean(), summary(1.0, 3.0).make_statistics()


def case_summary_of_arrays():
    return summary(np.ones(2, "f"), np.zeros(2, "f")).make_statistics()


def case_summary_with_weights():
    found = chainer.reporter.Summary()
    found.add(1.0, weight=3)
    found.add(np.float32(5))
    return found.compute_mean(), found.make_statistics()


def case_summary_of_a_variable():
    return summary(chainer.Variable(np.float32(3) * np.ones((), "f"))).compute_mean()


def case_dict_summary():
    found = chainer.reporter.DictSummary()
    found.add({"a": 1.0, "b": (2.0, 3), "c": "text", "d": np.array([1, 2])})
    found.add({"a": 2, "b": (4.0, 1)})
    return found.compute_mean(), found.make_statistics()


def case_dict_summary_of_a_list():
    chainer.reporter.DictSummary().add([1, 2])


def case_dict_summary_with_weight_of_an_array():
    chainer.reporter.DictSummary().add({"a": (1.0, np.ones(2))})


def case_reports_of_two_observers():
    r = chainer.Reporter()
    model = L.Classifier(L.Linear(2, 2))
    r.add_observer("main", model)
    r.add_observers("main", model.namedlinks(skipself=True))
    with r:
        chainer.report({"x": 1}, model)
        chainer.report({"y": 2}, model.predictor)
        with chainer.report_scope({}) as scope:
            chainer.report({"z": 3})
            inner = dict(scope or {})
    return r.observation, inner


def case_report_of_an_unknown_observer():
    with chainer.Reporter():
        chainer.report({"a": 1}, L.Linear(1, 1))


def averaged(observations):
    trainer = trainer_of(8, observations=observations)
    trainer.extend(extensions.MicroAverage("right", "all", "ratio"))
    found = []
    trainer.extend(
        lambda t: found.append(t.observation.get("ratio")),
        name="note",
        trigger=(1, "iteration"),
        priority=-1,
    )
    trainer.run()
    return found


def case_micro_average():
    return averaged(lambda i: {"right": i % 3, "all": 2})


def case_micro_average_of_keys_that_come_and_go():
    return averaged(lambda i: {"right": i, "all": 10} if i % 2 else {})


def case_micro_average_without_a_denominator():
    return averaged(lambda i: {"right": i})


def case_micro_average_of_nothing():
    return averaged(lambda i: {})


class Stream:
    """A stream without flush."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text


def printed(out):
    trainer = trainer_of(8, observations=loss)
    trainer.extend(extensions.LogReport())
    trainer.extend(
        extensions.PrintReport(["epoch", "iteration", "loss", "none"], out=out)
    )
    trainer.run()


def case_print_report_on_a_stream_without_flush():
    out = Stream()
    printed(out)
    return [line.split() for line in out.text.replace("\033[J", "").split("\n")]


def case_print_report_on_text():
    out = io.StringIO()
    printed(out)
    return [line.split() for line in out.getvalue().replace("\033[J", "").split("\n")]


def case_print_report_without_a_log():
    trainer = trainer_of(2)
    trainer.extend(extensions.PrintReport(["epoch"]))
    trainer.run()


def case_print_report_with_its_own_log():
    trainer = trainer_of(8, observations=loss)
    out = io.StringIO()
    log = extensions.LogReport()
    trainer.extend(extensions.PrintReport(["epoch", "loss"], log, out))
    trainer.run()
    return [line.split() for line in out.getvalue().replace("\033[J", "").split("\n")]


def case_reservoir():
    found = variable_statistics_plot.Reservoir(3, (2,))
    for i in range(3):
        found.add(np.full(2, i), idx=3 - i)
    return found.get_data()


def case_reservoir_not_full():
    found = variable_statistics_plot.Reservoir(3, (2,))
    found.add(np.full(2, 5))
    return found.get_data()


def case_statistician():
    x = np.arange(12.0).reshape(3, 4)
    return variable_statistics_plot.Statistician(True, True, (0, 50, 100))(x, axis=None)


def case_statistician_of_an_axis():
    x = np.arange(12.0).reshape(3, 4)
    return variable_statistics_plot.Statistician(True, False, ())(x, axis=1)
