"""Differentiable communication, with ChainerMN's names."""

from renga.links.parallel import multi_node_batch_normalization as batch_normalization
from renga.links.parallel.sequence import (
    gather_sequence,
    ring_attention,
    scatter_sequence,
)
from renga.links.parallel.spatial import (
    gather_image,
    scatter_image,
    spatial_average,
    spatial_average_pooling,
    spatial_broadcast,
    spatial_convolution,
    spatial_deconvolution,
    spatial_max_pooling,
    spatial_resize_images,
    spatial_sum,
    spatial_unpooling,
    spatial_upsampling_2d,
)
from renga.parallel.functions.collective_communication import (
    allgather,
    allreduce,
    alltoall,
    bcast,
    gather,
    reduce_scatter,
    scatter,
)
from renga.parallel.functions.point_to_point_communication import recv, send
from renga.parallel.functions.pseudo_connect import pseudo_connect
from renga.parallel.redistribute.cross_entropy import softmax_cross_entropy

__all__ = [
    "allgather",
    "allreduce",
    "alltoall",
    "batch_normalization",
    "bcast",
    "gather",
    "gather_image",
    "gather_sequence",
    "pseudo_connect",
    "recv",
    "reduce_scatter",
    "ring_attention",
    "scatter",
    "scatter_image",
    "scatter_sequence",
    "send",
    "softmax_cross_entropy",
    "spatial_average",
    "spatial_average_pooling",
    "spatial_broadcast",
    "spatial_convolution",
    "spatial_deconvolution",
    "spatial_max_pooling",
    "spatial_resize_images",
    "spatial_sum",
    "spatial_unpooling",
    "spatial_upsampling_2d",
]
