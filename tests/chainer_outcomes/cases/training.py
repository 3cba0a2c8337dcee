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


def case_thread_writer_creates_workers():
    writer = snapshot_writers.ThreadWriter(savefun=lambda path, target: None)
    worker = writer.create_worker("f", ".", {})
    return hasattr(worker, "start"), hasattr(worker, "join")


def case_own_worker():
    calls = []

    class Worker:
        def start(self):
            calls.append("start")

        def join(self):
            calls.append("join")

    class Own(snapshot_writers.StandardWriter):
        def create_worker(self, filename, outdir, target, **kwds):
            calls.append((filename, outdir, sorted(kwds)))
            return Worker()

    writer = Own(compression=False)
    writer("a", ".", {})
    writer("b", ".", {})
    writer.finalize()
    writer.finalize()
    return calls


def case_own_task():
    calls = []
    writer = snapshot_writers.ThreadQueueWriter(task=lambda *args: calls.append(args))
    writer("a", ".", {})
    writer("b", ".", {})
    writer.finalize()
    return calls


def case_own_queue():
    calls = []

    class Own(snapshot_writers.ThreadQueueWriter):
        def create_task(self, savefun):
            return lambda *args: calls.append(args[0])

        def create_queue(self):
            calls.append("queue")
            return super().create_queue()

        def create_consumer(self, q):
            calls.append("consumer")
            return threading.Thread(target=self.consume, args=(q,))

    writer = Own()
    writer("a", ".", {})
    writer.finalize()
    return calls


def written(writer):
    writer("f.npz", ".", {"x": np.arange(3.0)})
    writer.finalize()
    with np.load("f.npz") as found:
        return sorted(os.listdir(".")), dict(found)


def case_simple_writer():
    return written(snapshot_writers.SimpleWriter())


def case_thread_writer():
    return written(snapshot_writers.ThreadWriter())


def case_thread_queue_writer():
    return written(snapshot_writers.ThreadQueueWriter())


def snapshots(n=8, **options):
    trainer = trainer_of(n)
    trainer.extend(extensions.snapshot(**options), trigger=(2, "iteration"))
    trainer.run()
    return sorted(os.listdir("out"))


def case_snapshot():
    return snapshots()


def case_snapshot_name():
    return snapshots(filename="s_{.updater.epoch}")


def case_snapshot_retains():
    trainer = trainer_of(8)
    trainer.extend(extensions.snapshot(n_retains=2), trigger=(2, "iteration"))
    trainer.extend(lambda t: time.sleep(0.02), trigger=(1, "iteration"), name="wait")
    trainer.run()
    return sorted(os.listdir("out"))


def case_snapshot_condition():
    return snapshots(condition=lambda: False)


def case_snapshot_autoload():
    snapshots(n=4)
    trainer = trainer_of(8)
    trainer.extend(extensions.snapshot(autoload=True))
    started = []
    trainer.extend(
        lambda t: started.append(t.updater.iteration),
        name="note",
        trigger=(1, "iteration"),
    )
    trainer.run()
    return started


def case_snapshot_on_error():
    def fail(trainer):
        raise ValueError("no")

    trainer = trainer_of(4)
    trainer.extend(extensions.snapshot(snapshot_on_error=True), trigger=(10, "epoch"))
    trainer.extend(fail, trigger=(3, "iteration"))
    try:
        trainer.run()
    except ValueError as error:
        return str(error), sorted(os.listdir("out"))


def case_snapshot_object():
    trainer = trainer_of(4)
    trainer.extend(
        extensions.snapshot_object(L.Linear(2, 1), "m_{.updater.iteration}"),
        trigger=(2, "iteration"),
    )
    trainer.run()
    with np.load("out/m_4") as found:
        return sorted(os.listdir("out")), sorted(found.files)


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
