"""Classes that programs derive from Chainer's, by their private names, and their runs."""

import importlib
import io
import os
import sys

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from cases.training.training import Counting, loss, trainer_of
from chainer import iterators, optimizers, reporter, training
from chainer.links.rnn import n_step_rnn
from chainer.training import extensions, triggers
from chainer.training.extensions import evaluator, log_report, util

X = np.linspace(-1, 1, 40).reshape(10, 4).astype("f")


class Printer(extensions.PrintReport):
    """It leaves the constructor out."""

    def __init__(self, entries):
        self._entries, self._log_report, self._log_len = entries, "LogReport", 0
        self.lines = []

    def __call__(self, trainer):
        log = trainer.get_extension(self._log_report).log
        for entry in log[self._log_len :]:
            self._print(entry)
        self._log_len = len(log)

    def _print(self, observation):
        self.lines.append([observation[key] for key in self._entries])


class PlainReport(extensions.PrintReport):
    """It prints the header and calls for each row."""

    def __call__(self, trainer):
        out, report = self._out, self._log_report
        if self._header:
            out.write(self._header)
            self._header = None
        if isinstance(report, str):
            report = trainer.get_extension(report)
        elif isinstance(report, log_report.LogReport):
            report(trainer)
        while len(report.log) > self._log_len:
            self._print(report.log[self._log_len])
            self._log_len += 1


def printed(report, **options):
    trainer = trainer_of(4, per_epoch=2, observations=loss)
    if isinstance(report._log_report, str):
        trainer.extend(extensions.LogReport())
    trainer.extend(report, **options)
    trainer.run()


def case_print_report_without_its_constructor():
    report = Printer(["epoch", "loss"])
    printed(report)
    return report.lines


def case_print_report_with_a_call_of_its_own():
    out = io.StringIO()
    printed(PlainReport(["epoch", "loss"], out=out))
    return out.getvalue().split()


def case_print_report_with_a_log_report_of_its_own():
    out = io.StringIO()
    report = extensions.LogReport(trigger=(1, "iteration"))
    printed(PlainReport(["iteration", "loss"], report, out))
    return out.getvalue().split()


def case_print_report_whose_rows_are_read():
    found = []

    class Reading(extensions.PrintReport):
        def __call__(self, trainer):
            super().__call__(trainer)
            found.append(self._out.getvalue().replace("\033[J", "").split())
            self._out.seek(0)
            self._out.truncate()

        def _print(self, observation):
            found.append(sorted(observation))
            super()._print(observation)

    printed(Reading(["epoch", "loss"], out=io.StringIO()), trigger=(2, "iteration"))
    return found


def case_print_report_writes_to_the_standard_output():
    return extensions.PrintReport(["epoch"])._out is sys.stdout


def case_log_report_of_its_own_file():
    written = []

    class Lines(extensions.LogReport):
        def __init__(self, keys=None, trigger=(1, "epoch"), post=None, name="log"):
            super().__init__(keys, trigger, post, name)

        def __call__(self, trainer):
            self._summary.add(trainer.observation)
            if self._trigger(trainer):
                written.append((self._log_name, self._summary.compute_mean()))
                self._init_summary()

    trainer = trainer_of(4, per_epoch=2, observations=loss)
    trainer.extend(Lines())
    trainer.run()
    return written


def case_plot_report_begins_intervals():
    begun = []

    class Plot(extensions.PlotReport):
        def _init_summary(self):
            begun.append(self._file_name)
            super()._init_summary()

    trainer = trainer_of(4, per_epoch=2, observations=loss)
    trainer.extend(Plot(["loss"], "epoch", file_name="loss.png"))
    trainer.run()
    return begun


def case_early_stopping_by_another_condition():
    seen = []

    class Stop(triggers.EarlyStoppingTrigger):
        def _init_summary(self):
            seen.append("begun")
            super()._init_summary()

        def _stop_condition(self):
            seen.append((self.count, self.best))
            return super()._stop_condition() or self.best < 1.2

    stop = Stop((2, "iteration"), monitor="loss", max_trigger=(10, "iteration"))
    training.Trainer(Counting(observations=loss), stop, "out").run()
    return seen, stop.count, stop.best, stop.already_warning


def case_schedule_with_a_call_of_its_own():
    class Halves(extensions.ExponentialShift):
        def __call__(self, trainer):
            self._t += 1
            optimizer = self._get_optimizer(trainer)
            value = self._init * self._rate ** (self._t // 2)
            self._update_value(optimizer, value)
            found.append((self._last_value, optimizer.lr))

    found = []
    optimizer = optimizers.SGD(1.0).setup(L.Linear(2, 2))
    trainer = trainer_of(5, optimizer=optimizer)
    trainer.extend(Halves("lr", 0.5), trigger=(1, "iteration"))
    trainer.run()
    return found


class Foreign:
    """An optimizer and a model of another library."""

    target = None
    steps = 0

    def namedlinks(self, skipself=False):
        return []

    def step(self):
        self.steps += 1

    def serialize(self, serializer):
        self.steps = serializer("steps", self.steps)


def case_optimizer_of_another_library():
    class Updater(training.StandardUpdater):
        def update_core(self):
            (x,) = self.converter(self.get_iterator("main").next(), self.device)
            self.get_optimizer("main").step()
            reporter.report({"loss": float(x.sum())})

    def trainer_of_epochs(n):
        optimizer = Foreign()
        optimizer.target = Foreign()
        data = chainer.datasets.TupleDataset(X)
        iterator = iterators.SerialIterator(data, 5, shuffle=False)
        updater = Updater(iterator, optimizer)
        return training.Trainer(updater, (n, "epoch"), "out"), optimizer

    trainer, optimizer = trainer_of_epochs(2)
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.snapshot(filename="saved"), trigger=(2, "epoch"))
    trainer.run()
    resumed, other = trainer_of_epochs(3)
    chainer.serializers.load_npz("out/saved", resumed)
    resumed.run()
    losses = [entry["loss"] for entry in trainer.get_extension("LogReport").log]
    return optimizer.steps, losses, other.steps, resumed.updater.iteration


def case_updater_without_its_constructor():
    class Updater(training.StandardUpdater):
        def __init__(self, iterator, optimizer):
            self._iterators = {"main": iterator}
            self._optimizers = {"main": optimizer}
            self.iteration = 0

        def update_core(self):
            batch = self._iterators["main"].next()
            optimizer = self._optimizers["main"]
            optimizer.update(lambda x: F.sum(optimizer.target(x)), np.stack(batch))

    optimizer = optimizers.SGD().setup(L.Linear(4, 2))
    updater = Updater(iterators.SerialIterator(X, 5), optimizer)
    trainer = training.Trainer(updater, (2, "epoch"), "out")
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.snapshot(filename="saved"))
    trainer.run()
    log = trainer.get_extension("LogReport").log
    return optimizer.t, [entry["iteration"] for entry in log]


def case_parameter_with_an_update_of_its_own():
    class Halved(chainer.Parameter):
        def update(self):
            self.grad = self.grad / 2
            super().update()

    link = chainer.Link()
    with link.init_scope():
        link.W = Halved(chainer.initializers.Constant(0.5), (3, 4))
    found = []
    for cls in (optimizers.SGD, optimizers.MomentumSGD):
        optimizer = cls(0.1).setup(link)
        optimizer.update(lambda x: F.mean(F.linear(x, link.W) ** 2), X)
        found.append(link.W.array.copy())
    return found


def case_report_for_the_optimizer_of_another_library():
    class Report(chainer.Chain):
        def __call__(self):
            reporter.report({"loss": 1.5}, self)

    class Updater(training.StandardUpdater):
        def update_core(self):
            self.get_iterator("main").next()
            self.get_optimizer("main").target()

    optimizer = type("Optimizer", (), {})()
    optimizer.target = Report()
    iterator = iterators.SerialIterator(chainer.datasets.TupleDataset(X), 5)
    trainer = training.Trainer(Updater(iterator, optimizer), (1, "epoch"), "out")
    trainer.extend(extensions.LogReport())
    trainer.run()
    return trainer.get_extension("LogReport").log[0]["main/loss"]


def case_run_goes_on_after_an_exception():
    calls = []

    def fail_once(trainer):
        calls.append(trainer.updater.iteration)
        if len(calls) == 3:
            raise KeyError

    trainer = trainer_of(5)
    trainer.extend(fail_once, trigger=(1, "iteration"))
    before = trainer.updater.iteration
    try:
        trainer.run(show_loop_exception_msg=False)
    except KeyError:
        before = trainer.updater.iteration
    trainer.run()
    return before, calls


def case_run_goes_on_after_an_interrupt():
    calls = []

    def interrupt(trainer):
        calls.append(trainer.updater.iteration)
        if len(calls) == 2:
            raise KeyboardInterrupt

    trainer = trainer_of(4)
    trainer.extend(extensions.LogReport(trigger=(1, "iteration")))
    trainer.extend(interrupt, trigger=(1, "iteration"), priority=1)
    try:
        trainer.run()
    except KeyboardInterrupt:
        trainer.run()
    log = trainer.get_extension("LogReport").log
    return calls, [entry["iteration"] for entry in log]


def case_no_extension_is_called_before_a_resumed_training():
    calls = []

    def trainer_of_iterations(n):
        trainer = trainer_of(n, observations=loss)
        trainer.extend(
            lambda t: calls.append((n, t.updater.iteration)),
            name="note",
            trigger=(100, "iteration"),
            call_before_training=True,
        )
        trainer.extend(extensions.snapshot(filename="saved"), trigger=(2, "iteration"))
        return trainer

    trainer_of_iterations(2).run()
    resumed = trainer_of_iterations(3)
    chainer.serializers.load_npz("out/saved", resumed)
    resumed.run()
    return calls


def case_adam_with_an_update_of_its_own():
    class Own(optimizers.Adam):
        def update(self, lossfun=None, *args, **kwargs):
            value = lossfun(*args, **kwargs)
            if getattr(self, "_use_cleargrads", True):
                self.target.cleargrads()
            value.backward(loss_scale=self._loss_scale)
            value.unchain_backward()
            norm = sum((p.grad**2).sum() for p in self.target.params(False))
            norms.append(float(norm))
            self.reallocate_cleared_grads()
            self.call_hooks("pre")
            self.t += 1
            for param in self.target.params():
                param.update()
            self.reallocate_cleared_grads()
            self.call_hooks("post")

    norms = []
    link = L.Linear(4, 2, initialW=np.arange(8, dtype="f").reshape(2, 4) / 8)
    optimizer = Own().setup(link)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(0.1))
    for _ in range(3):
        optimizer.update(lambda x: F.sum(link(x) ** 2), X)
    return link.W, optimizer.t, norms


RULES = {
    "ada_delta": ("AdaDeltaRule", 2),
    "ada_grad": ("AdaGradRule", 2),
    "adam": ("AdamRule", 10),
    "corrected_momentum_sgd": ("CorrectedMomentumSGDRule", 2),
    "momentum_sgd": ("MomentumSGDRule", 2),
    "msvag": ("MSVAGRule", 4),
    "nesterov_ag": ("NesterovAGRule", 2),
    "rmsprop": ("RMSpropRule", 4),
    "rmsprop_graves": ("RMSpropGravesRule", 4),
    "sgd": ("SGDRule", 1),
    "smorms3": ("SMORMS3Rule", 2),
}


def rule_of(module):
    (name, _) = RULES[module]
    return getattr(importlib.import_module("chainer.optimizers." + module), name)


def hyperparameters(hyperparam):
    return sorted((k, float(v)) for k, v in hyperparam.get_dict().items())


def case_default_hyperparameters():
    modules = [importlib.import_module("chainer.optimizers." + name) for name in RULES]
    return [hyperparameters(module._default_hyperparam) for module in modules]


def case_rules_without_an_optimizer():
    return [hyperparameters(rule_of(module)().hyperparam) for module in RULES]


def case_rules_with_hyperparameters_in_order():
    found = []
    for module, (_, n) in RULES.items():
        values = [k / 16 for k in range(n)]
        found.append(hyperparameters(rule_of(module)(None, *values).hyperparam))
    return found


def case_rules_with_hyperparameters_by_name():
    rule = optimizers.momentum_sgd.MomentumSGDRule
    parent = optimizers.MomentumSGD(0.5).hyperparam
    rules = rule(lr=0.25), rule(parent, momentum=0.75), rule(parent, None, 0.125)
    return [hyperparameters(rule.hyperparam) for rule in rules]


def case_rules_of_parameters():
    link = L.Linear(4, 2, initialW=np.ones((2, 4), "f"))
    link.W.update_rule = optimizers.momentum_sgd.MomentumSGDRule(lr=0.5)
    link.b.update_rule = optimizers.adam.AdamRule()
    for _ in range(2):
        link.cleargrads()
        F.mean((link(X) - 1) ** 2).backward()
        for param in link.params():
            param.update()
    return link.W, link.b


def case_rule_of_momentum_with_an_update_of_its_own():
    class Rule(optimizers.momentum_sgd.MomentumSGDRule):
        def update_core_cpu(self, param):
            step = self.hyperparam.lr * param.grad
            step[abs(step) < 0.05] = 0.05
            v = self.state["v"]
            v *= self.hyperparam.momentum
            v -= step
            param.array += v

    class Own(optimizers.MomentumSGD):
        def __init__(self, lr=0.1, rule=None):
            super().__init__(lr)
            self._rule = rule

        def create_update_rule(self):
            if self._rule == "own":
                return Rule(self.hyperparam)
            return optimizers.momentum_sgd.MomentumSGDRule(self.hyperparam)

    def weights_of(optimizer):
        link = L.Linear(4, 2, initialW=np.ones((2, 4), "f"))
        optimizer.setup(link)
        for _ in range(2):
            optimizer.update(lambda x: F.mean(link(x) ** 2), X)
        return link.W

    class WithoutParent(optimizers.MomentumSGD):
        def create_update_rule(self):
            return optimizers.momentum_sgd.MomentumSGDRule()

    own = [weights_of(Own(rule=name)) for name in ("own", None)]
    return own, weights_of(WithoutParent(0.25))


def case_rule_of_adam_with_a_step_size_of_its_own():
    class Rule(optimizers.adam.AdamRule):
        @property
        def alpha_t(self):
            return 0.1 * self.t

    class Own(optimizers.Adam):
        factor = chainer.optimizer.HyperparameterProxy("factor")

        def __init__(self, factor):
            super().__init__()
            self.hyperparam.factor = factor

        def create_update_rule(self):
            return Rule(self.hyperparam)

    link = L.Linear(4, 2, initialW=np.zeros((2, 4), "f"))
    optimizer = Own(3)
    optimizer.setup(link)
    for _ in range(2):
        optimizer.update(lambda x: F.sum((link(x) - 1) ** 2), X)
    rule = link.W.update_rule
    return link.W, optimizer.factor, rule.hyperparam.factor, rule.lr


def case_batch_normalization_makes_its_arrays():
    class Own(L.BatchNormalization):
        def _initialize_params(self, shape):
            self.avg_mean = self._init_array(self._initial_avg_mean, 0, shape)
            self.avg_var = self._init_array(self._initial_avg_var, 1, shape)
            self.gamma.initialize(shape)
            self.beta.initialize(shape)

    link = Own(axis=0, initial_avg_var=2)
    y = link(X)
    return y, link.avg_mean, link.avg_var


def case_recurrent_links_of_the_base_class():
    class Memory(n_step_rnn.NStepRNNBase):
        n_weights = 8
        use_bi_direction = False
        n_cells = 2

        def __init__(self, *sizes, recurrent_dropout=0.0, **options):
            self.recurrent_dropout = recurrent_dropout
            super().__init__(*sizes, **options)

        def rnn(self, *args):
            assert len(args) == 7
            return F.n_step_lstm(*args)

        def forward(self, hx, cx, xs, **kwargs):
            (hy, cy), ys = self._call([hx, cx], xs, **kwargs)
            return hy, cy, ys

    class Both(n_step_rnn.NStepRNNBase):
        n_weights = 2
        use_bi_direction = True
        n_cells = 1

        def rnn(self, *args):
            return F.n_step_birnn(*args, activation="relu")

        def forward(self, hx, xs):
            (hy,), ys = self._call([hx], xs)
            return hy, ys

    xs = [X[:2], X[2:6], X[6:9]]
    link = Memory(2, 4, 3, 0.0, recurrent_dropout=0.5)
    both = Both(1, 4, 2, 0.0)
    return link(None, None, xs), both(None, xs)


def case_images_with_labels_by_a_subclass():
    class Names(chainer.datasets.LabeledImageDataset):
        def get_example(self, i):
            path, label = self._pairs[i]
            kinds = np.dtype(self._dtype).name, np.dtype(self._label_dtype).name
            return os.path.join(self._root, path), label, kinds

    data = Names([("a.png", 3), ("b.png", 4)], "images", np.float64)
    return data[1], len(data)


def case_parameter_without_gradient():
    param = chainer.Parameter(np.ones((3, 2), "f"))
    param._requires_grad = False
    y = F.embed_id(np.array([0, 2], "i"), param)
    return param.requires_grad, y.requires_grad


def case_progress_bar():
    class Bar(util.ProgressBar):
        def get_lines(self):
            speeds = self.update_speed(3, 0.5)
            return ["first\n", f"{len(speeds)}\n"]

    out = io.StringIO()
    bar = Bar(out=out)
    bar.update()
    bar.update()
    bar.close()
    return out.getvalue()


def case_progress_bar_without_lines():
    util.ProgressBar(out=io.StringIO()).update()


def case_progress_bar_of_an_iterator():
    iterator = iterators.SerialIterator(list(range(10)), 3, repeat=False, shuffle=False)
    iterator.next()
    first, second, _ = evaluator._IteratorProgressBar(iterator).get_lines()
    return first, second


def case_iterator_at_its_end():
    found = []
    data = list(range(7))
    for cls in (iterators.SerialIterator, iterators.MultithreadIterator):
        iterator = cls(data, 3, repeat=False, shuffle=False)
        batches = list(iterator)
        found.append((len(batches), iterator.previous_epoch_detail))
    return found


def case_multiprocess_iterator_knows_whether_it_shuffles():
    cls = iterators.MultiprocessIterator
    return [cls([1], 1, shuffle=given).shuffle for given in (None, True, False)]


EXPRESSIONS = """
    optimizers.sgd.SGDRule(None, 1, 2)
    optimizers.sgd.SGDRule(momentum=0.5)
    optimizers.sgd.SGDRule(None, 0.5, lr=0.5)
    optimizers.SGD().setup(L.Linear(2, 2)).call_hooks("both")
    chainer.grad([F.sum(chainer.Variable(X))], [chainer.Variable(X)], X)
    chainer.grad([F.sum(chainer.Variable(X))], [chainer.Variable(X)], grad_inputs=X)
    chainer.backward([F.sum(chainer.Variable(X))], X)
"""
