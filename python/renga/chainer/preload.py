"""Importing this installs the alias: the fork server can only import."""

from renga.chainer.finder import install

install()
