"""Training with iterators of programs that know less than Chainer's own."""

import chainer
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions, triggers

DATA = [(np.full(2, i, "f"), np.int32(i % 2)) for i in range(10)]


class Old(chainer.dataset.Iterator):
    """Knows the epoch only."""

    def __init__(self, size=3):
        self.size, self.position = size, 0
        self.epoch, self.is_new_epoch = 0, False

    def __next__(self):
        batch = DATA[self.position : self.position + self.size]
        self.position += self.size
        self.is_new_epoch = self.position >= len(DATA)
        if self.is_new_epoch:
            self.epoch += 1
            self.position = 0
        return batch

    next = __next__

    def serialize(self, serializer):
        self.position = serializer("position", self.position)
        self.epoch = serializer("epoch", self.epoch)


class Detailed(Old):
    """Knows its epoch_detail, not the previous one."""

    @property
    def epoch_detail(self):
        return self.epoch + self.position / len(DATA)


class Serial(chainer.iterators.SerialIterator):
    """Has no previous epoch_detail."""

    def __init__(self):
        super().__init__(DATA, 3)

    @property
    def previous_epoch_detail(self):
        raise AttributeError("previous_epoch_detail")


class Counted(chainer.dataset.Iterator):
    """Counts batches; what it knows of epochs follows from that."""

    count = 0

    def __next__(self):
        self.count += 1
        return DATA[:2]

    @property
    def epoch(self):
        return int(self.epoch_detail)

    @property
    def epoch_detail(self):
        return self.count * 0.4

    @property
    def is_new_epoch(self):
        return self.epoch != int(self.epoch_detail - 0.4)


TRIGGERS = {
    "an epoch": lambda: (1, "epoch"),
    "half an epoch": lambda: (0.5, "epoch"),
    "two iterations": lambda: (2, "iteration"),
    "once": lambda: triggers.OnceTrigger(),
    "epochs 1 and 2": lambda: triggers.ManualScheduleTrigger([1, 2], "epoch"),
    "iterations": lambda: triggers.ManualScheduleTrigger([3, 5], "iteration"),
    "without a file": lambda: _restored(triggers.IntervalTrigger(1, "epoch")),
    "schedule without a file": lambda: _restored(
        triggers.ManualScheduleTrigger([1, 2], "epoch")
    ),
}
STOPS = {"12 iterations": (12, "iteration"), "2 epochs": (2, "epoch")}


class Empty:
    """A deserializer of a file that has nothing."""

    def __call__(self, key, value):
        raise KeyError(key)


def _restored(trigger):
    trigger.serialize(Empty())
    return trigger


def _trainer(iterator, stop):
    model = L.Classifier(L.Linear(2, 2))
    optimizer = chainer.optimizers.SGD().setup(model)
    updater = training.StandardUpdater(iterator, optimizer)
    return training.Trainer(updater, stop, out="out")


def _calls(iterator, trigger, stop):
    """In which iterations an extension is called."""
    trainer, calls = _trainer(iterator(), stop), []

    @training.make_extension(trigger=trigger())
    def remember(trainer):
        calls.append(trainer.updater.iteration)

    trainer.extend(remember)
    trainer.run()
    return [calls, trainer.updater.iteration]


GENERATED = {
    f"{iterator.__name__}: {name}, {stop}": lambda i=iterator, n=name, s=stop: _calls(
        i, TRIGGERS[n], STOPS[s]
    )
    for iterator in (Old, Detailed, Serial, Counted)
    for name in TRIGGERS
    for stop in STOPS
}


def case_log_of_epochs():
    trainer = _trainer(Detailed(4), (2, "epoch"))
    trainer.extend(extensions.LogReport(trigger=(1, "epoch")))
    trainer.run()
    log = trainer.get_extension("LogReport").log
    return [(entry["epoch"], entry["iteration"]) for entry in log]


def case_trigger_of_a_mocked_updater():
    """What is no number is not read where iterations count."""

    class Updater:
        iteration, epoch_detail = 0, object()

    class Trainer:
        updater = Updater()

    trigger, fired = triggers.IntervalTrigger(2, "iteration"), []
    for Updater.iteration in range(1, 6):
        fired.append(trigger(Trainer()))
    return fired


def case_evaluator_of_an_iterator_without_reset():
    class Ending(Detailed):
        def __next__(self):
            if self.epoch:
                raise StopIteration
            return super().__next__()

    model = L.Classifier(L.Linear(2, 2, initialW=1))
    evaluator = extensions.Evaluator(Ending(4), model)
    return [evaluator(), evaluator()]
