"""Parallelism of every kind: one package below each kind, and what they share.

Links import ``placement``, ``redistribute`` and ``functions``, which know no link:
where a value is on the ranks, and how it changes places. All others know the links:
``channel``, ``sequence``, ``spatial`` and ``samples`` divide what one model computes,
with the parallel links that ``conversion`` puts into it; ``data`` averages gradients of
replicas, ``compression`` sends fewer bytes for it, ``asynchronous`` does not wait for
it, and ``elastic`` goes on without some ranks; ``pipeline`` divides the layers, and
``plan`` searches for the fastest of these. ``parallelize`` applies one to a model.

Programs use the public names in ``renga.distributed``, ``renga.pipeline`` and
``renga.planning``.
"""

from typing import TYPE_CHECKING

from renga._runtime.suggestions import suggest_names as _suggest_names

if TYPE_CHECKING:
    from renga.parallel import (
        asynchronous as asynchronous,
        channel as channel,
        compression as compression,
        conversion as conversion,
        data as data,
        elastic as elastic,
        functions as functions,
        groups as groups,
        parallelize as parallelize,
        pipeline as pipeline,
        placement as placement,
        plan as plan,
        redistribute as redistribute,
        samples as samples,
        sequence as sequence,
        spatial as spatial,
    )

_suggest_names(
    __name__,
    at_first_use={
        "renga.parallel": (
            "asynchronous channel compression conversion data elastic functions "
            "groups parallelize pipeline placement plan redistribute samples "
            "sequence spatial"
        )
    },
)
