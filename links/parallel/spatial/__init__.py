"""Links and functions of images that are sharded over several ranks."""

from renga.links.parallel.spatial.batch_normalization import (
    SpatialBatchNormalization as SpatialBatchNormalization,
)
from renga.links.parallel.spatial.convolution.functions import (
    spatial_convolution as spatial_convolution,
)
from renga.links.parallel.spatial.convolution.functions import (
    spatial_deconvolution as spatial_deconvolution,
)
from renga.links.parallel.spatial.convolution.links import (
    SpatialConvolution2D as SpatialConvolution2D,
)
from renga.links.parallel.spatial.convolution.links import (
    SpatialConvolutionND as SpatialConvolutionND,
)
from renga.links.parallel.spatial.convolution.links import (
    SpatialDeconvolution2D as SpatialDeconvolution2D,
)
from renga.links.parallel.spatial.convolution.links import (
    SpatialDeconvolutionND as SpatialDeconvolutionND,
)
from renga.links.parallel.spatial.grid import SpatialGrid as SpatialGrid
from renga.links.parallel.spatial.image import gather_image as gather_image
from renga.links.parallel.spatial.image import scatter_image as scatter_image
from renga.links.parallel.spatial.image import spatial_average as spatial_average
from renga.links.parallel.spatial.image import spatial_broadcast as spatial_broadcast
from renga.links.parallel.spatial.image import spatial_sum as spatial_sum
from renga.links.parallel.spatial.linear import SpatialLinear as SpatialLinear
from renga.links.parallel.spatial.pooling import (
    spatial_average_pooling as spatial_average_pooling,
)
from renga.links.parallel.spatial.pooling import (
    spatial_max_pooling as spatial_max_pooling,
)
from renga.links.parallel.spatial.pooling import spatial_unpooling as spatial_unpooling
from renga.links.parallel.spatial.pooling import (
    spatial_upsampling_2d as spatial_upsampling_2d,
)
from renga.links.parallel.spatial.pooling_links import (
    SpatialAveragePooling2D as SpatialAveragePooling2D,
)
from renga.links.parallel.spatial.pooling_links import (
    SpatialMaxPooling2D as SpatialMaxPooling2D,
)
from renga.links.parallel.spatial.resize import (
    spatial_resize_images as spatial_resize_images,
)
