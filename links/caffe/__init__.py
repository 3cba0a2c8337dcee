"""Networks and weights from Caffe's files."""

from renga.links.caffe.caffe_function import CaffeFunction as CaffeFunction
