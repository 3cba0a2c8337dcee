"""Models whose placements are tracked while they run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from renga.core.link import Link
from renga.core.serializer import AbstractSerializer, Deserializer
from renga.links.parallel.forms import is_form
from renga.parallel.placement.tracker import current_tracker
from renga.utils.type_check import InvalidType


class LoadedLink(Link):
    """A link of a model that all ranks run together, which notes what it has loaded."""

    parallel_run: Any  # a ParallelRun

    def serialize(self, serializer: AbstractSerializer) -> None:
        super().serialize(serializer)
        if isinstance(serializer, Deserializer):
            self.parallel_run.loads.add(self, serializer)

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        super().copyparams(link, copy_persistent)
        self.parallel_run.loads.add(self)

    def note_optimizer(
        self, optimizer: object, serializer: AbstractSerializer | None = None
    ) -> None:
        super().note_optimizer(optimizer, serializer)
        self.parallel_run.loads.add_optimizer(optimizer)
        if serializer is not None:
            self.parallel_run.loads.add(optimizer, serializer)


class TrackedLink(LoadedLink):
    """A link of a model whose activations are sharded.

    When it is called from outside of the model, the latter's ``ParallelRun`` shards
    arguments, and replaces or checks functions until the call returns.
    """

    def forward(self, *args: object, **kwargs: object) -> object:
        return self._track(super().forward, args, kwargs)  # type: ignore[misc]

    @contextlib.contextmanager
    def init_scope(self) -> Iterator[None]:
        """Context in which parameters are registered.

        Raises:
            RuntimeError: while the model runs: each rank would have a parameter of its
                own.
        """
        if current_tracker() is not None:
            raise RuntimeError(
                f"{type(self).__name__}: expected a model that has all of its links "
                "before ranks share it, got one that makes them in a call: pass "
                "parallelize an example, which it calls the model with"
            )
        with super().init_scope():
            yield

    def _track(self, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        tracker = current_tracker()
        if tracker is not None:
            result = run(*args, **kwargs)
            tracker.note_shards(result)
            return result
        self._require_own_links()
        first_calls = self.parallel_run.first_calls
        first_calls.kept.show(self)
        try:
            compare = first_calls.begin(self)
            result = self.parallel_run(self, run, args, kwargs)
            compare(args, kwargs)
        except InvalidType as error:
            if str(error).startswith(f"{type(self).__name__}: "):
                raise
            raise InvalidType(
                f"{type(self).__name__}: {error}; within a model of parallelize, "
                "shapes and arrays of activations are those of shards: read them "
                "before the first link"
            ) from error
        finally:
            first_calls.kept.hide(self)
        return result

    def _require_own_links(self) -> None:
        """Raises ValueError if the model got a link after ranks have shared it."""
        for path, link in self.namedlinks():
            if not isinstance(link, TrackedLink):
                continue
            for child in link.children():
                # Parallel links may have links of their own.
                if child.parallel_run is None and not is_form(link):
                    raise ValueError(
                        f"{type(self).__name__}: expected the links that the ranks "
                        "share since parallelize, got another one at "
                        f"{path.rstrip('/')}/{child.name}: set it before"
                    )


class TrackedCallable(TrackedLink):
    """A tracked link whose class overrides ``__call__``."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._track(super().__call__, args, kwargs)


def tracked_class(
    link: Link, run_model: object, override: type[Link] | None = None
) -> type[Link]:
    """A class derived from that of a link, whose calls are tracked.

    Args:
        override: a class whose methods are used in the place of the link's.
    """
    kind = type(link)
    base = TrackedLink if kind.__call__ is Link.__call__ else TrackedCallable
    bases = (base, kind) if override is None else (base, override, kind)
    return _derived(kind, bases, run_model)


def loaded_class(
    link: Link, run_model: object, override: type[Link] | None = None
) -> type[Link]:
    """A class derived from that of a link, which notes what it has loaded."""
    kind = type(link)
    bases = (kind,) if override is None else (override, kind)
    return _derived(kind, (LoadedLink, *bases), run_model)


def _derived(kind: type, bases: tuple[type, ...], run_model: Any) -> type[Link]:
    names = {
        "parallel_run": run_model,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    return type(kind.__name__, bases, names)


def is_tracked(model: Link) -> bool:
    """Whether a link of the model is tracked already."""
    return any(isinstance(link, TrackedLink) for link in model.links())
