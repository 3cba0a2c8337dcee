"""States that lack entries, as earlier versions of Chainer wrote them, and go on."""

import json
import tempfile
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import iterators, optimizers, reporter, training
from chainer.serializers import DictionarySerializer, NpzDeserializer
from chainer.training import extensions, triggers


def saved(source):
    serializer = DictionarySerializer()
    source.serialize(serializer)
    return {key: np.asarray(value) for key, value in serializer.target.items()}


def plain(state):
    """Entries sorted by name, without those that are about random numbers."""
    return {
        key: state[key].tolist() for key in sorted(state) if "random_state" not in key
    }


def loaded(target, state, strict=True, again=True):
    """How an object loads a state: its state then or the error, and warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            target.serialize(NpzDeserializer(state, strict=strict))
            after = plain(saved(target)) if again else None
        except Exception as error:
            after = type(error).__name__
    kinds = sorted({w.category.__name__ for w in found})
    return after, [kind for kind in kinds if kind == "UserWarning"]


def removals(state):
    """No entry, one after the other, all of them; of sums only one."""
    names = sorted(state)
    single = [name for name in names if not name.endswith(("_n", "_x2"))]
    return [(), *[(name,) for name in single], tuple(names)]


def said(names):
    return "all" if len(names) > 1 else "".join(names) or "nothing"


def without(state, *names):
    return {
        key: value
        for key, value in state.items()
        if not any(key == name or key.startswith(name + "/") for name in names)
    }


OUT = tempfile.mkdtemp()  # for logs that are written while cases are generated


class Updater:
    """Epochs of four iterations."""

    iteration = 0
    epoch = property(lambda self: self.iteration // 4)
    epoch_detail = property(lambda self: self.iteration / 4)
    previous_epoch_detail = property(lambda self: max(self.iteration - 1, 0) / 4)
    is_new_epoch = property(lambda self: self.iteration % 4 == 0)


class Trainer:
    is_before_training = False
    elapsed_time = property(lambda self: self.updater.iteration * 10.0)

    def __init__(self, iteration=0, loss=0.5):
        self.updater = Updater()
        self.updater.iteration = iteration
        self.observation = {"loss": loss, "n": 2}
        self.out = OUT


def fired(trigger, begin, end, every=1):
    return [i for i in range(begin, end, every) if trigger(Trainer(i, 1 / (i + 1)))]


TRIGGERS = {
    "interval of iterations": lambda: triggers.IntervalTrigger(3, "iteration"),
    "interval of epochs": lambda: triggers.IntervalTrigger(1.5, "epoch"),
    "once": lambda: triggers.OnceTrigger(),
    "once, and when resumed": lambda: triggers.OnceTrigger(call_on_resume=True),
    "time": lambda: triggers.TimeTrigger(30),
    "schedule of iterations": lambda: triggers.ManualScheduleTrigger(
        [4, 7], "iteration"
    ),
    "schedule of epochs": lambda: triggers.ManualScheduleTrigger([1, 2.5], "epoch"),
    "minimum": lambda: triggers.MinValueTrigger("loss", (2, "iteration")),
    "maximum": lambda: triggers.MaxValueTrigger("loss", (2, "iteration")),
}


def resumed(create, state, strict, every):
    """What a trigger does after it has loaded a state of iteration 5."""
    trigger = create()
    after = loaded(trigger, state, strict)
    return after, fired(trigger, 6, 16, every)


def of_triggers():
    """Each entry of each trigger's state missing, or all of them."""
    found = {}
    for name, create in TRIGGERS.items():
        trigger = create()
        fired(trigger, 0, 6)
        state = saved(trigger)
        for missing in removals(state):
            for strict in (True, False) if len(missing) != 1 else (True,):
                for every in (1, 2):
                    case = f"{name} without {said(missing)}, {strict}, every {every}"
                    found[case] = (
                        lambda a=(create, without(state, *missing), strict, every): (
                            resumed(*a)
                        )
                    )
    return found


def summary():
    result = reporter.Summary()
    for x in (1.0, 2.0, 4.0):
        result.add(np.float32(x))
    return result


def dict_summary():
    result = reporter.DictSummary()
    result.add({"a": 1.0, "b": 2.0})
    result.add({"a": 3.0})
    return result


def log():
    result = extensions.LogReport(trigger=(2, "iteration"), filename=None)
    for i in range(1, 6):
        result(Trainer(i))
    return result


def serial(**options):
    result = iterators.SerialIterator(list(range(5)), 2, **options)
    for _ in range(4):
        next(result)
    return result


def multithread():
    result = iterators.MultithreadIterator(list(range(5)), 2, shuffle=False)
    for _ in range(4):
        next(result)
    result.finalize()
    return result


def x(*shape):
    n = int(np.prod(shape))
    return (np.arange(n, dtype="f") * 0.7 % 3).reshape(shape)


def trained(link):
    link(x(8, 4) ** 2)
    return link


def momentum():
    link = L.Linear(2, 1, initialW=1)
    optimizer = optimizers.MomentumSGD(0.1).setup(link)
    for _ in range(2):
        optimizer.update(lambda: F.sum(link(x(3, 2)) ** 2))
    return optimizer


SOURCES = {
    "Summary": (summary, reporter.Summary),
    "DictSummary": (dict_summary, reporter.DictSummary),
    "LogReport": (
        log,
        lambda: extensions.LogReport(trigger=(2, "iteration"), filename=None),
    ),
    "SerialIterator": (
        lambda: serial(shuffle=False),
        lambda: iterators.SerialIterator(list(range(5)), 2, shuffle=False),
    ),
    "SerialIterator shuffled": (
        lambda: serial(shuffle=True),
        lambda: iterators.SerialIterator(list(range(5)), 2, shuffle=True),
    ),
    "BatchNormalization": (
        lambda: trained(L.BatchNormalization(4)),
        lambda: L.BatchNormalization(4),
    ),
    "BatchNormalization of no size": (
        lambda: trained(L.BatchNormalization(4)),
        lambda: L.BatchNormalization(axis=0),
    ),
    "BatchNormalization without gamma": (
        lambda: trained(L.BatchNormalization(4, use_gamma=False)),
        lambda: L.BatchNormalization(4, use_gamma=False),
    ),
    "BatchRenormalization": (
        lambda: trained(L.BatchRenormalization(4, 2.0, 1.0)),
        lambda: L.BatchRenormalization(4, 2.0, 1.0),
    ),
    "DecorrelatedBatchNormalization": (
        lambda: trained(L.DecorrelatedBatchNormalization(4, groups=2)),
        lambda: L.DecorrelatedBatchNormalization(4, groups=2),
    ),
    "GroupNormalization": (
        lambda: trained(L.GroupNormalization(2, 4)),
        lambda: L.GroupNormalization(2),
    ),
    "LayerNormalization": (
        lambda: trained(L.LayerNormalization(4)),
        lambda: L.LayerNormalization(),
    ),
    "MomentumSGD": (
        momentum,
        lambda: optimizers.MomentumSGD(0.5).setup(L.Linear(2, 1, initialW=1)),
    ),
}


def resumed_object(create, create_empty, missing, strict):
    state = without(saved(create()), *missing)
    return loaded(create_empty(), state, strict)


def of_objects():
    found = {}
    for name, (create, empty) in SOURCES.items():
        for missing in removals(saved(create())):
            for strict in (True, False):
                case = f"{name} without {said(missing)}, {strict}"
                found[case] = lambda a=(create, empty, missing, strict): resumed_object(
                    *a
                )
    return found


GENERATED = {**of_triggers(), **of_objects()}


def decorrelated(groups, mean, projection):
    """A state in which averages have other axes than today's."""
    link = L.DecorrelatedBatchNormalization(4, groups=groups)
    state = saved(link)
    state["avg_mean"], state["avg_projection"] = mean, projection
    loaded_state = loaded(link, state)
    with chainer.using_config("train", False):
        return loaded_state, link(x(3, 4))


def case_decorrelated_of_one_group():
    return decorrelated(1, x(4), x(4, 4))


def case_decorrelated_of_two_groups():
    return decorrelated(2, x(2), x(2, 2))


def case_decorrelated_of_today():
    return decorrelated(2, x(2, 2), x(2, 2, 2))


def case_decorrelated_of_another_size():
    return decorrelated(2, x(3), x(3, 3))


def case_log_of_a_chainer_without_summaries():
    target = extensions.LogReport(trigger=(2, "iteration"), filename=None)
    entries = [{"loss": 1.5, "iteration": 2, "epoch": 0, "elapsed_time": 3.5}]
    state = {"_log": np.array(json.dumps(entries))}
    after = loaded(target, state)
    target(Trainer(3, 2.0)), target(Trainer(4, 3.0))
    return after, target.log


def case_order_of_earlier_iterators():
    """SerialIterator once called its order ``_order``."""
    state = saved(serial(shuffle=True))
    state["_order"] = state.pop("order") * 0 + [3, 1, 4, 0, 2]
    target = iterators.SerialIterator(list(range(5)), 2)
    loaded(target, state)
    return next(target), target.epoch, target.previous_epoch_detail


def trainer_of(n, seed=0):
    """Training whose epochs have three iterations, with every kind of state."""
    model = chainer.Sequential(
        L.Linear(4, 3, nobias=True, initialW=0.1),
        L.BatchNormalization(3),
        L.Linear(3, 1, initialW=0.2),
    )
    model = L.Classifier(model, lossfun=F.mean_squared_error)
    model.compute_accuracy = False
    data = [(row, row[:1] * 2) for row in x(6, 4)]
    iterator = iterators.SerialIterator(data, 2, shuffle=False)
    optimizer = optimizers.Adam(0.1).setup(model)
    updater = training.updaters.StandardUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (n, "iteration"), ".")
    trainer.extend(extensions.LogReport(trigger=(2, "iteration")))
    trainer.extend(extensions.ExponentialShift("alpha", 0.5), trigger=(1, "epoch"))
    trainer.extend(extensions.observe_lr(), trigger=(1, "iteration"))
    trainer.extend(
        extensions.snapshot_object(model, "best"),
        trigger=triggers.MinValueTrigger("main/loss"),
    )
    return trainer


def continued(*missing):
    """The log of eight iterations, of which a snapshot lies between: and the weights."""
    first = trainer_of(5)
    first.run()
    state = without(saved(first), *missing)
    second = trainer_of(8)
    after = loaded(second, state, again=False)
    second.run()
    entries = [
        {key: value for key, value in entry.items() if key != "elapsed_time"}
        for entry in second.get_extension("LogReport").log
    ]
    model = second.updater.get_optimizer("main").target
    weights = [param.array for _, param in sorted(model.namedparams())]
    return after, entries, weights


def case_snapshot():
    return continued()


def case_snapshot_without_state_of_triggers():
    return continued(
        *[
            "extension_triggers/" + n
            for n in ("LogReport", "ExponentialShift", "_observe_value")
        ]
    )


def case_snapshot_without_summary():
    return continued("extensions/LogReport/_summary")


def case_snapshot_without_previous_epoch():
    return continued("updater/iterator:main/previous_epoch_detail")
