"""Installs the alias on import: the fork server can only import modules."""

from renga.chainer.finder import install

install()
