"""Hooks that replace a link's weight while the link runs."""

from __future__ import annotations

from typing import Any

from renga import functions as F
from renga.core.backend import get_array_module
from renga.core.configuration import config, no_backprop_mode
from renga.core.function_node import FunctionNode
from renga.core.link import Link
from renga.core.link_hook import (
    LinkHook,
    _ForwardPostprocessCallbackArgs,
    _ForwardPreprocessCallbackArgs,
)
from renga.core.parameter import Parameter
from renga.core.types import Array, ArrayLike
from renga.core.variable import Variable, as_array, as_variable
from renga.functions.util.recomputation import is_recomputable, remembered


class WeightHook(LinkHook):
    """Computes a link's weight for every call, in ``normalize_weight``.

    The parameter itself is not replaced: it gets the gradients, is updated and saved.
    The hook is added to one link, by ``add_hook``.

    Raises:
        ValueError: the link has no such parameter, or this rank a shard of it.
        NotImplementedError: used in a ``with`` statement.
    """

    original_weight: Any = None

    def __init__(self, weight_name: str, name: str | None) -> None:
        self.weight_name = weight_name
        if name is not None:
            self.name = name

    def __enter__(self) -> WeightHook:
        raise NotImplementedError(
            "WeightHook: expected Link.add_hook, got a with statement"
        )

    def __exit__(self, *_: Any) -> None:
        raise NotImplementedError(
            "WeightHook: expected Link.add_hook, got a with statement"
        )

    def added(self, link: Link) -> None:
        if getattr(link, self.weight_name, None) is None:
            raise ValueError(
                f"WeightHook: expected a parameter, got {self.weight_name!r}"
            )
        if getattr(self._weight(link), "shard_of", None) is not None:
            raise ValueError(
                f"{self.name}: expected a link whose weight every rank has, got "
                f"{type(link).__name__} {link.name}, of which each rank has a shard: "
                "add the hook before parallelize, which keeps such a link whole"
            )
        if self._weight(link).is_initialized:
            self.prepare(link)

    def prepare(self, link: Link) -> None:
        """Called once for a link, when its weight has a shape."""

    def normalize_weight(self, link: Link) -> Variable:
        """The weight for one call."""
        raise NotImplementedError

    def forward_preprocess(self, cb_args: _ForwardPreprocessCallbackArgs) -> None:
        link = cb_args.link
        # A call that raised has not restored the parameter.
        self._restore(link)
        if not self._weight(link).is_initialized:
            # The link initializes its weight for the shape of these inputs.
            with no_backprop_mode():
                link.forward(*cb_args.args, **cb_args.kwargs)
            self.prepare(link)
        weight = self.normalize_weight(link)
        self.original_weight = self._weight(link)
        vars(link)[self.weight_name] = weight

    def forward_postprocess(self, cb_args: _ForwardPostprocessCallbackArgs) -> None:
        self._restore(cb_args.link)

    def _restore(self, link: Any) -> None:
        if self.original_weight is not None:
            vars(link)[self.weight_name] = self.original_weight
            self.original_weight = None

    def _weight(self, link: Any) -> Any:
        return getattr(link, self.weight_name)


class SpectralNormalization(WeightHook):
    """Divides a weight by its largest singular value, for every call of the link.

    The value is estimated by ``n_power_iteration`` power iterations, which continue
    from call to call during training: their vector is saved with the link as the
    persistent value ``W_u`` (by the name of the weight). The result is multiplied by
    ``factor``, and with ``use_gamma`` by a parameter ``gamma``, initially that value.

    Raises:
        AssertionError: no power iteration.
        ValueError: the link has no parameter ``weight_name``, or one without outputs.
        NotImplementedError: used in a ``with`` statement.

    Source: Miyato et al., Spectral normalization for generative adversarial networks,
    2018.
    """

    name = "SpectralNormalization"
    axis = 0
    v: Any = None

    def __init__(
        self,
        n_power_iteration: int = 1,
        eps: float = 1e-6,
        use_gamma: bool = False,
        factor: float | None = None,
        weight_name: str = "W",
        name: str | None = None,
    ) -> None:
        assert n_power_iteration > 0, "SpectralNormalization: expected an iteration"
        super().__init__(weight_name, name)
        self.n_power_iteration = n_power_iteration
        self.eps = eps
        self.use_gamma = use_gamma
        self.factor = factor
        self.vector_name = weight_name + "_u"

    def added(self, link: Link) -> None:
        # The weights of deconvolutions have their outputs on the second axis.
        transposed = any("Deconvolution" in base.__name__ for base in type(link).mro())
        self.axis = 1 if transposed else 0
        super().added(link)

    def deleted(self, link: Link) -> None:
        self._restore(link)
        for name in (self.vector_name, *(["gamma"] if self.use_gamma else [])):
            if hasattr(link, name):
                delattr(link, name)

    def prepare(self, link: Link) -> None:
        W = self._weight(link)
        if W.shape[self.axis] == 0:
            raise ValueError(
                f"SpectralNormalization: expected a weight with outputs, got {W.shape}"
            )
        u = link.xp.random.normal(size=(W.shape[self.axis],)).astype(W.dtype)
        link.add_persistent(self.vector_name, u)
        if self.use_gamma:
            rows = as_array(self.reshape_W(W)).astype("d")
            largest = link.xp.linalg.svd(rows, compute_uv=False)[0]
            with link.init_scope():
                # Of an array, so that its gradient begins empty, not as NaN.
                link.gamma = Parameter(link.xp.asarray(largest, W.dtype))

    def reshape_W(self, W: ArrayLike) -> Variable:
        """The weight as a matrix with a row for each output."""
        if self.axis:
            W = F.moveaxis(W, self.axis, 0)
        return F.reshape(W, (W.shape[0], -1))

    def normalize_weight(self, link: Any) -> Variable:
        """The weight of ``link`` over its largest singular value."""
        W = self._weight(link)
        rows = self.reshape_W(W)
        last = getattr(link, self.vector_name)
        if config.in_recomputing and not is_recomputable() and self.v is not None:
            u, v = as_variable(last), as_variable(self.v)  # the program recomputes
        else:
            u, v = remembered(lambda: self._iterated(rows, last))
        sigma = F.sum(F.linear(rows, v[None]) * u[:, None])
        if self.factor is not None:
            sigma = sigma / self.factor
        weight = W / F.broadcast_to(sigma, W.shape)
        if not u.is_meta:  # of another stage of a pipeline
            self.v = v.array
            if config.train and not config.in_recomputing:
                last[...] = u.array
        if self.use_gamma:
            weight = F.broadcast_to(link.gamma, W.shape) * weight
        return weight

    def _iterated(self, rows: Variable, u: Any) -> tuple[Variable, ...]:
        with no_backprop_mode():
            return PowerIteration(u, self.n_power_iteration, self.eps).apply((rows,))


class PowerIteration(FunctionNode):
    """The vectors that belong to the largest singular value of a matrix, estimated.

    Args:
        u: the left vector to begin with.
        count: of iterations.
        eps: added to norms.
    """

    def __init__(self, u: Array, count: int, eps: float) -> None:
        self._u, self._count, self._eps = u, count, eps

    def forward(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        (W,), u = inputs, self._u
        for _ in range(self._count):
            v = self._unit(u @ W)
            u = self._unit(W @ v)
        return u, v

    def _unit(self, x: Any) -> Any:
        norm = get_array_module(x).linalg.norm(x.astype("d"))
        return (x / (norm + self._eps)).astype(x.dtype)


class WeightStandardization(WeightHook):
    """Standardizes a weight over all but its first axis, for every call of the link.

    ``(W - mean) / sqrt(variance + eps)`` replaces the parameter.

    Raises:
        ValueError: the link has no parameter ``weight_name``.
        NotImplementedError: used in a ``with`` statement.

    Source: Qiao et al., Weight standardization, 2019.
    """

    name = "WeightStandardization"

    def __init__(
        self, *, eps: float = 1e-5, weight_name: str = "W", name: str | None = None
    ) -> None:
        super().__init__(weight_name, name)
        self.eps = eps

    def normalize_weight(self, link: Link) -> Variable:
        """The standardized weight of ``link``."""
        W = self._weight(link)
        xp = link.xp
        rows = F.reshape(W, (len(W), -1))
        ones = xp.ones(rows.shape[1], W.dtype)
        y = F.layer_normalization(rows, ones, xp.zeros_like(ones), self.eps)
        return F.reshape(y, W.shape)
