"""Sharded parameters in other threads than the one that updates them."""

import copy
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core, program
from renga.communicators import local
from renga.distributed import parallelize
from renga.parallel.data import buckets
from tests.files import saved
from tests.parallel.data.sharded_programs import T, X, make, own


@pytest.fixture(autouse=True)
def units_of_one_layer(monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 100)
    monkeypatch.setenv("RENGA_TIMEOUT", "20")


@pytest.fixture(params=[True, False], ids=["one copy", "gathered"])
def on_ranks(request):
    return lambda act: local.run(act, ranks=2, shared_memory=request.param)


def flat(model):
    """All parameters, one after another."""
    return np.concatenate([param.array.ravel() for param in model.params()])


def in_thread(function):
    """What a new thread returns."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def steps(comm, model, optimizer, after=lambda: None, indices=(0, 1, 2, 3)):
    for i in indices:
        optimizer.update(model.loss, own(comm, X[i]), own(comm, T[i]))
        after()


def trained(comm, read):
    """What another thread reads after each update, and the parameters at the end."""
    model, optimizer = make(comm)
    found = []
    steps(comm, model, optimizer, lambda: found.append(in_thread(lambda: read(model))))
    return found, flat(model)


def norms(model):
    return [float(F.sum(param**2).array) for param in model.params()]


def outputs(model):
    with renga.no_backprop_mode(), renga.using_config("train", False):
        return model(X[0]).array


def operators(model):
    return (2.0 * model.a.W + model.b.W).array


def gradient(model):
    model.cleargrads()
    model.loss(X[0], T[0]).backward()
    found = [np.array(param.grad) for param in model.params()]
    model.cleargrads()
    return found


def second_derivatives(model):
    loss = F.sum(F.tanh(model(X[0])))
    (first,) = renga.grad([loss], [model.b.W], enable_double_backprop=True)
    (second,) = renga.grad([F.sum(first**2)], [model.b.W])
    return second.array


def arrays(model):
    return [np.array(param.array) for param in model.params()]


def file_of(model):
    arrays = saved(model)
    return [arrays[name] for name in sorted(arrays)]


def copied(model):
    return arrays(copy.deepcopy(model))


READS = [norms, outputs, operators, gradient, second_derivatives, arrays]
READS += [file_of, copied]


@pytest.mark.parametrize("read", READS, ids=lambda f: f.__name__)
def test_reads_between_updates(on_ranks, read):
    expected = trained(None, read)
    for found in on_ranks(lambda comm: trained(comm, read)):
        assert len(leaves(found)) == len(leaves(expected))
        for x, y in zip(leaves(found), leaves(expected)):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)


def leaves(x):
    if isinstance(x, (list, tuple)):
        return [leaf for item in x for leaf in leaves(item)]
    return [x]


def test_reads_while_another_thread_updates(on_ranks):
    """What is read is not compared, but must not become the parameters."""

    def act(comm):
        model, optimizer = make(comm)
        steps(comm, model, optimizer, indices=[0])
        ends, errors = threading.Event(), []

        def read():
            try:
                while not ends.is_set():
                    for param in model.params():
                        assert np.isfinite(param.array).all()
                    assert np.isfinite(outputs(model)).all()
            except BaseException as e:
                errors.append(e)

        reader = threading.Thread(target=read)
        reader.start()
        steps(comm, model, optimizer, indices=[1, 2, 3] * 10)
        ends.set()
        reader.join()
        return flat(model), errors

    model, optimizer = make(None)
    steps(None, model, optimizer, indices=[0, *[1, 2, 3] * 10])
    for found, errors in on_ranks(act):
        assert not errors
        np.testing.assert_allclose(found, flat(model), rtol=0, atol=1e-12)


def test_an_array_that_another_thread_keeps_sees_updates(on_ranks):
    def act(comm):
        model, optimizer = make(comm)
        steps(comm, model, optimizer, indices=[0])
        kept = in_thread(lambda: model.b.W.array)
        steps(comm, model, optimizer, indices=[1])
        seen = np.array(kept)
        kept[...] = 1
        return seen, np.array(model.b.W.array)

    model, optimizer = make(None)
    steps(None, model, optimizer, indices=[0, 1])
    for seen, written in on_ranks(act):
        np.testing.assert_allclose(seen, model.b.W.array, rtol=0, atol=1e-12)
        assert np.all(written == 1)


def test_gradients_of_another_thread_are_those_of_the_caller(on_ranks):
    def program(comm):
        model, optimizer = make(comm)
        steps(comm, model, optimizer, indices=[0])
        for i in (1, 2):
            model.cleargrads()
            x, t = own(comm, X[i]), own(comm, T[i])
            in_thread(lambda x=x, t=t: model.loss(x, t).backward())
            optimizer.update()
        return flat(model)

    expected = program(None)
    for found in on_ranks(program):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_updates_move_to_another_thread(on_ranks):
    def program(comm):
        model, optimizer = make(comm)
        steps(comm, model, optimizer, indices=[0, 1])
        in_thread(lambda: steps(comm, model, optimizer, indices=[2, 3]))
        return flat(model)

    expected = program(None)
    for found in on_ranks(program):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


class Layers(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = renga.links.Linear(4, 6, initialW=0.5)
            self.b = renga.links.Linear(6, 2, initialW=0.25)

    def forward(self, x):
        return self.b(F.tanh(self.a(x)))


def test_divided_links_of_other_threads_are_read_whole(on_ranks):
    def train(comm):
        model, optimizer = make(comm)
        steps(comm, model, optimizer)
        return model

    kept = on_ranks(train)
    x = np.ones((2, 4), "f")

    def penalty(comm):
        model = parallelize(Layers(), comm, "channel", x)
        with program.Recorder(model):
            recorded = F.sum(model.a.W**2)
        return float(F.sum(model.a.W**2).array), float(recorded.array)

    assert local.run(penalty, ranks=2) == [(6.0, 6.0)] * 2
    assert len(kept) == 2


def test_functions_read_no_parameters_when_all_models_are_gone():
    gc.collect()  # models of other tests

    def during(comm):
        model, optimizer = make(comm)
        steps(comm, model, optimizer)
        return in_thread(_core.default_around_call) is not None

    # Ranks that share one copy gather nothing.
    assert local.run(during, ranks=2, shared_memory=False) == [True, True]
    gc.collect()
    assert _core.default_around_call() is None
