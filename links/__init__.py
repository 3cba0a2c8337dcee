"""Links: layers with parameters."""

from renga.links.connection.embed_id import EmbedID as EmbedID
from renga.links.connection.linear import Linear as Linear
from renga.links.convolution.convolution_2d import Convolution2D as Convolution2D
from renga.links.convolution.deconvolution_2d import Deconvolution2D as Deconvolution2D
from renga.links.model.classifier import Classifier as Classifier
from renga.links.normalization.batch_normalization import (
    BatchNormalization as BatchNormalization,
)
