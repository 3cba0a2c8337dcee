"""What a single process computes for each treatment of the weights."""

import numpy as np

from renga.parallel.pipeline.batches.micro_batches import split


def accumulated(model, optimizer, batches, m):
    """Trains by gradients added up over micro-batches."""
    optimizer.setup(model)
    for batch in batches:
        model.cleargrads()
        for size, part in split(batch, m):
            loss = model(*part)
            _backward(loss, size / len(batch[0]), optimizer)
        optimizer.update()
    return arrays(model)


def delayed(model, optimizer, batches, m, stage_of, stages, weights):
    """Trains by gradients of the weights that each stage of a pipeline has.

    Before the forward pass of micro-batch n, stage k of p has completed the backward
    passes of n - (p - 1 - k) micro-batches; ``weights`` says what it computes with.
    """
    optimizer.setup(model)
    params = dict(sorted(model.namedparams()))
    versions = [_state(params)]  # after each update

    def updates_at_forward(stage, n):
        return max(0, n - (stages - 1 - stage)) // m

    def updates_until(end, n):
        """Completed with micro-batch ``end``, without the one that n belongs to."""
        updates = (end + 1) // m
        return updates - (n // m < updates)

    def used(path, n, backward):
        stage, t = stage_of[path], n // m
        newest = t if backward else updates_at_forward(stage, n)
        if weights == "flush":
            return versions[newest][path][0]
        if weights == "stash":
            return versions[updates_at_forward(stage, n)][path][0]
        if weights == "two_versions":
            return versions[max(t - 1, 0)][path][0]
        end = n + stage // 2
        last = len(batches) * m - 1
        if backward and n > last - (stages - 1 - stage):  # while the pipeline drains
            end = min(end, last)
        target = updates_until(end, n)
        if weights == "pipeoptim":
            target = t
        W, v = versions[newest][path]
        steps = target - newest
        if v is None or steps <= 0:
            return W.copy()
        # Rounded once, as by a fused multiply-add.
        return (W.astype("d") + steps * v.astype("d")).astype(W.dtype)

    for t, batch in enumerate(batches):
        model.cleargrads()
        for i, (size, part) in enumerate(split(batch, m)):
            n = t * m + i
            for path, param in params.items():
                param.array[...] = used(path, n, False)
            loss = model(*part)
            for path, param in params.items():
                param.array[...] = used(path, n, True)
            _backward(loss, size / len(batch[0]), optimizer)
        for path, param in params.items():
            param.array[...] = versions[-1][path][0]
        optimizer.update()
        versions.append(_state(params))
    return arrays(model)


def _backward(loss, weight, optimizer):
    scale = optimizer.loss_scale
    loss.grad = np.full((), weight * (scale or 1.0), loss.dtype)
    loss.backward(loss_scale=scale)


def _state(params):
    """Values and velocities."""
    return {
        path: (param.array.copy(), _velocity(param)) for path, param in params.items()
    }


def _velocity(param):
    state = param.update_rule.state
    return state["v"].copy() if state and "v" in state else None


def arrays(model):
    """Copies of the parameters by path."""
    return {path: param.array.copy() for path, param in model.namedparams()}
