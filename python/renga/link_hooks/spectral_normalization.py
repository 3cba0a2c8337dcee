"""SpectralNormalization: weights whose largest singular value is about 1."""

from __future__ import annotations

from typing import Any

from renga import functions as F
from renga.core.backend import get_array_module
from renga.core.configuration import config
from renga.core.link import Link
from renga.core.parameter import Parameter
from renga.core.types import ArrayLike
from renga.core.variable import Variable, as_array
from renga.link_hooks.weight_hook import WeightHook


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
                link.gamma = Parameter(largest.astype(W.dtype), ())

    def reshape_W(self, W: ArrayLike) -> Variable:
        """The weight as a matrix with a row for each output."""
        if self.axis:
            W = F.moveaxis(W, self.axis, 0)
        return F.reshape(W, (W.shape[0], -1))

    def normalize_weight(self, link: Any) -> Variable:
        """The weight of ``link`` over its largest singular value."""
        W = self._weight(link)
        rows = self.reshape_W(W)
        u, v = getattr(link, self.vector_name), self.v
        # A recomputed forward pass must use the same values.
        if v is None or not config.in_recomputing:
            u, v = self._iterate(rows.array, u)
            self.v = v
        sigma = F.sum(F.linear(rows, v[None]) * u[:, None])
        if self.factor is not None:
            sigma = sigma / self.factor
        weight = W / F.broadcast_to(sigma, W.shape)
        if config.train and not config.in_recomputing:
            getattr(link, self.vector_name)[...] = u
        if self.use_gamma:
            weight = F.broadcast_to(link.gamma, W.shape) * weight
        return weight

    def _iterate(self, W: Any, u: Any) -> tuple[Any, Any]:
        for _ in range(self.n_power_iteration):
            v = self._unit(u @ W)
            u = self._unit(W @ v)
        return u, v

    def _unit(self, x: Any) -> Any:
        norm = get_array_module(x).linalg.norm(x.astype("d"))
        return (x / (norm + self.eps)).astype(x.dtype)
