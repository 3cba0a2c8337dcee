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
