"""Gradients that a loop does not clear before it adds others to them."""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.communicators import local
from renga.distributed import asynchronous, create_multi_node_optimizer


def test_what_an_update_has_used_is_partial_once_a_pass_adds_to_it():
    x = renga.Parameter(np.ones(2, "f4"))
    F.sum(x).backward()
    x.spend_grad()
    assert not x.grad_is_partial
    F.sum(x).backward()
    assert x.grad_is_partial


@pytest.mark.parametrize(
    "renew",
    [
        lambda x: x.cleargrad(),
        lambda x: setattr(x, "grad", np.zeros(2, "f4")),
        lambda x: setattr(x, "grad_var", renga.Variable(np.zeros(2, "f4"))),
    ],
)
def test_a_gradient_that_is_cleared_or_set_is_whole(renew):
    x = renga.Parameter(np.ones(2, "f4"))
    x.spend_grad()
    x.addgrad(renga.Variable(np.ones(2, "f4"), grad=np.ones(2, "f4")))
    assert x.grad_is_partial
    renew(x)
    F.sum(x).backward()
    assert not x.grad_is_partial


@pytest.mark.parametrize("options", [{"shard": "states"}, {"double_buffering": True}])
def test_an_update_by_a_loss_clears_gradients_itself(ranks, options):
    """A loss of another network, which reads this one, may leave some behind."""

    def run(comm):
        model = renga.Sequential(renga.links.Linear(2, 2))
        optimizer = create_multi_node_optimizer(
            renga.optimizers.SGD(0.1), comm, **options
        )
        optimizer.setup(model)
        x = np.ones((3, 2), "f4")
        for _ in range(3):
            optimizer.update(lambda: F.sum(model(x)), samples=3)
            F.sum(model(x)).backward()
        model.cleargrads()
        F.sum(model(x)).backward()
        optimizer.update()
        return True

    assert all(ranks(run))


def test_weights_of_uneven_batches_in_shared_updates():
    """Rank 0's gradients count less than the mean: a later weight would count again."""

    def run(comm):
        model = renga.Sequential(renga.links.Linear(400, 100))
        optimizer = create_multi_node_optimizer(renga.optimizers.SGD(0.1), comm)
        optimizer.setup(model)
        model.cleargrads()
        x = np.ones((2 + comm.rank, 400), "f4")
        for _ in range(4):
            F.mean(model(x)).backward()
            optimizer.samples = len(x)
            optimizer.update()

    with pytest.raises(RuntimeError, match="expected gradients that were cleared"):
        local.run(run, ranks=2)


@pytest.mark.parametrize("staleness", [0, 2])
def test_a_parameter_server_has_no_sums(staleness):
    def run(comm):
        model = renga.Sequential(renga.links.Linear(2, 2))
        optimizer = asynchronous.create_server_optimizer(
            renga.optimizers.SGD(0.1), comm, staleness=staleness
        )
        optimizer.setup(model)
        model.cleargrads()
        for _ in range(3):  # the first is of parameters that rank 0's replace
            F.sum(model(np.ones((3, 2), "f4"))).backward()
            optimizer.update()

    with pytest.raises(RuntimeError, match="expected gradients that were cleared"):
        local.run(run, ranks=2)


@pytest.mark.parametrize(
    "create", [create_multi_node_optimizer, asynchronous.create_local_sgd_optimizer]
)
def test_gradients_of_replaced_parameters_are_cleared(create):
    """They are None or 0 after the first update: later ones are added to nothing."""

    def run(comm):
        np.random.seed(comm.rank)
        model = renga.Sequential(renga.links.Linear(2, 2))
        optimizer = create(renga.optimizers.SGD(0.1), comm)
        optimizer.setup(model)
        model.cleargrads()
        F.sum(model(np.ones((3, 2), "f4"))).backward()
        optimizer.update()
        grads = [param.grad for param in model.params()]
        return [grad is None or (grad == 0).all() for grad in grads]

    assert local.run(run, ranks=2) == [[True, True]] * 2
