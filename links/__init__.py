"""Links: layers with parameters."""

from renga.links.batch_normalization import BatchNormalization as BatchNormalization
from renga.links.classifier import Classifier as Classifier
from renga.links.convolution_2d import Convolution2D as Convolution2D
from renga.links.deconvolution_2d import Deconvolution2D as Deconvolution2D
from renga.links.embed_id import EmbedID as EmbedID
from renga.links.linear import Linear as Linear
