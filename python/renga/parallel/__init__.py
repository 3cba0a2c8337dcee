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
    from renga.parallel import asynchronous as asynchronous
    from renga.parallel import channel as channel
    from renga.parallel import compression as compression
    from renga.parallel import conversion as conversion
    from renga.parallel import data as data
    from renga.parallel import elastic as elastic
    from renga.parallel import functions as functions
    from renga.parallel import groups as groups
    from renga.parallel import parallelize as parallelize
    from renga.parallel import pipeline as pipeline
    from renga.parallel import placement as placement
    from renga.parallel import plan as plan
    from renga.parallel import redistribute as redistribute
    from renga.parallel import samples as samples
    from renga.parallel import sequence as sequence
    from renga.parallel import spatial as spatial

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
