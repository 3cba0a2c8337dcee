"""Links and functions of images that are sharded over several ranks."""

from renga.links.parallel.spatial.batch_normalization import (
    SpatialBatchNormalization as SpatialBatchNormalization,
)
from renga.links.parallel.spatial.convolution import (
    spatial_convolution as spatial_convolution,
    spatial_deconvolution as spatial_deconvolution,
)
from renga.links.parallel.spatial.grid import SpatialGrid as SpatialGrid
from renga.links.parallel.spatial.image import (
    gather_image as gather_image,
    scatter_image as scatter_image,
    spatial_average as spatial_average,
    spatial_broadcast as spatial_broadcast,
    spatial_sum as spatial_sum,
)
from renga.links.parallel.spatial.links import (
    SpatialAveragePooling2D as SpatialAveragePooling2D,
    SpatialConvolution2D as SpatialConvolution2D,
    SpatialConvolutionND as SpatialConvolutionND,
    SpatialDeconvolution2D as SpatialDeconvolution2D,
    SpatialDeconvolutionND as SpatialDeconvolutionND,
    SpatialLinear as SpatialLinear,
    SpatialMaxPooling2D as SpatialMaxPooling2D,
)
from renga.links.parallel.spatial.pooling import (
    spatial_average_pooling as spatial_average_pooling,
    spatial_max_pooling as spatial_max_pooling,
    spatial_unpooling as spatial_unpooling,
    spatial_upsampling_2d as spatial_upsampling_2d,
)
from renga.links.parallel.spatial.resize import (
    spatial_resize_images as spatial_resize_images,
)
