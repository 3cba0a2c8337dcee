"""Differentiable communication, with ChainerMN's names."""

from renga.distributed.functions.collective_communication import (
    allgather,
    allreduce,
    alltoall,
    bcast,
    gather,
    reduce_scatter,
    scatter,
)
from renga.distributed.functions.point_to_point_communication import recv, send
from renga.distributed.functions.pseudo_connect import pseudo_connect
from renga.links.parallel import multi_node_normalization as batch_normalization
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

__all__ = [
    "allgather",
    "allreduce",
    "alltoall",
    "batch_normalization",
    "bcast",
    "gather",
    "gather_image",
    "pseudo_connect",
    "recv",
    "reduce_scatter",
    "scatter",
    "scatter_image",
    "send",
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
