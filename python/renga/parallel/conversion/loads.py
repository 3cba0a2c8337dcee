"""What single ranks have loaded of a model that all ranks run together."""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from typing import Any

from renga.communicators import Communicator
from renga.core.link import Link
from renga.core.optimizer import Optimizer
from renga.core.serializer import Deserializer
from renga.parallel.placement.loaded_values import (
    UnknownWhole,
    digest_of,
    set_link,
    set_optimizer,
    values_of_link,
    values_of_optimizer,
)

_OTHER = "a copy of the model"


class Loads:
    """Links of a model, and optimizers of it, that have got values on this rank.

    The values come from files, or from other links. Every call of the model compares
    what the ranks have loaded since the last one; if it was rank 0 alone, all get what
    it has.
    """

    def __init__(self) -> None:
        self._model: weakref.ref[Link] | None = None
        self._optimizers: list[weakref.ref[Any]] = []
        # Since the ranks agreed: what was loaded, and as a part of what.
        self._loaded: list[tuple[Any, Any]] = []
        self._is_noted = False  # that something has been loaded

    def begin(self, model: Link) -> None:
        """Sets the model whose links the ranks know by their paths."""
        self._model = weakref.ref(model)

    def add_optimizer(self, optimizer: Optimizer) -> None:
        """Takes note of an optimizer; ranks know it by the order of these calls."""
        if all(reference() is not optimizer for reference in self._optimizers):
            self._optimizers.append(weakref.ref(optimizer))

    def add(self, loaded: object, serializer: Deserializer | None = None) -> None:
        """Notes a link or an optimizer, unless the serializer fails and restores it."""
        self._is_noted = True
        noted = loaded, None if serializer is None else serializer.loaded_object
        self._loaded.append(noted)
        if serializer is not None:
            serializer.on_failure(functools.partial(self._restored, noted))

    def _restored(self, noted: tuple[Any, Any]) -> None:
        self._loaded = [each for each in self._loaded if each is not noted]

    def take_note(self) -> bool:
        """Whether something has been loaded since this was called last."""
        found, self._is_noted = self._is_noted, False
        return found

    def places(self) -> list[str]:
        """The names of what this rank has loaded, as often as it has."""
        if not self._loaded:
            return []
        known = {id(optimizer): name for name, optimizer in self._named_optimizers()}
        known.update((id(link), path) for path, link in self._named_links())
        return sorted(known.get(id(each), _OTHER) for each, _ in self._loaded)

    def _named_links(self) -> list[tuple[str, Link]]:
        model = None if self._model is None else self._model()
        return [] if model is None else list(model.namedlinks())

    def _named_optimizers(self) -> list[tuple[str, Any]]:
        found = [reference() for reference in self._optimizers]
        return [
            (f"optimizer {i}", each)
            for i, each in enumerate(found)
            if each is not None and each.target is not None
        ]

    def settings(self) -> str:
        """Numbers among the hyperparameters of the optimizers, and hooks, as text."""
        texts = []
        for name, optimizer in self._named_optimizers():
            hyperparam = getattr(optimizer, "hyperparam", None)
            values = {} if hyperparam is None else hyperparam.get_dict()
            numbers = [
                f"{key} = {value}"
                for key, value in sorted(values.items())
                if isinstance(value, (int, float))
            ]
            kinds = [type(hook) for _, _, hook in optimizer.timed_hooks()]
            # A user's hook may well be on one rank alone.
            own = [k.__name__ for k in kinds if k.__module__.startswith("renga.")]
            texts.append(f", {name} with {', '.join([*numbers, *own])}")
        return "".join(texts)

    def agree(self) -> None:
        """Forgets what has been loaded, since all ranks have it."""
        for each, _ in self._loaded:
            for link in each.links() if isinstance(each, Link) else ():
                link.forget_loaded()
        for _, link in self._named_links() if self._loaded else ():
            link.forget_loaded()
        self._loaded = []

    def share(self, comm: Communicator, name: str) -> bool:
        """Gives all ranks what rank 0 alone has loaded; every rank calls it.

        It may be given already, as by ``comm.bcast_data``.

        Args:
            name: of the model.

        Returns:
            Whether the ranks had loaded different things.

        Raises:
            RuntimeError: on all ranks, if another rank has loaded what rank 0 has not,
                or what rank 0 has loaded is not known. Nothing has changed.
        """
        found = comm.allgather_obj(self.places())
        if all(places == found[0] for places in found):
            return False
        shared: dict[str, Any] = {}
        problem = ""
        others = [Counter(places) - Counter(found[0]) for places in found]
        if any(others) or _OTHER in found[0]:
            problem = "others, or copies of the model, have loaded more"
        elif comm.rank == 0:
            try:
                shared = self._values(found[0])
            except UnknownWhole as error:
                problem = str(error)
        places, problem = comm.bcast_obj((list(shared), problem))
        if problem and not self._are_equal(comm):
            counts = [len(each) for each in found]
            raise RuntimeError(
                f"{name}: expected every rank to load its parameters, or rank 0 alone, "
                f"got {counts} links loaded on ranks 0 to {comm.size - 1}: {problem}"
            )
        links, optimizers = dict(self._named_links()), dict(self._named_optimizers())
        for place in places:
            values = comm.bcast_obj(shared.get(place))
            if comm.rank > 0 and place in links:
                set_link(links[place], values)
            elif comm.rank > 0:
                set_optimizer(optimizers[place], values)
        self._is_noted = True
        self.agree()
        return True

    def _are_equal(self, comm: Communicator) -> bool:
        """Whether all ranks have the same arrays, and these are not shards."""
        digests = [digest_of(link) for _, link in self._named_links()]
        return all(
            found == digests and digests and None not in digests
            for found in comm.allgather_obj(digests)
        )

    def _values(self, places: list[str]) -> dict[str, Any]:
        """What other ranks have to get, by links and optimizers."""
        links, optimizers = self._named_links(), dict(self._named_optimizers())
        self._require_nothing_else([each.target for each in optimizers.values()])
        tops = [link for path, link in links if path in places]
        covered = {id(link) for top in tops for link in top.links()}
        found: dict[str, Any] = {
            path: values_of_link(x) for path, x in links if id(x) in covered
        }
        for place in places:
            if place in optimizers:
                found[place] = values_of_optimizer(optimizers[place])
        return found

    def _require_nothing_else(self, targets: list[Link]) -> None:
        """Checks that no serial link beside the model has been loaded, too."""
        for _, whole in self._loaded:
            models = [whole] if isinstance(whole, Link) else targets
            if not models or not all(map(_is_parallel, models)):
                raise UnknownWhole(
                    "a larger model, with parameters of its own, may have been loaded"
                )


def _is_parallel(model: Link) -> bool:
    """Whether all parameters of a model are those of parallel models in it."""
    parallel = [link for link in model.links() if link.parallel_run is not None]
    inside = {id(param) for link in parallel for param in link.params()}
    return all(id(param) in inside for param in model.params())
