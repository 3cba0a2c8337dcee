"""What all other packages are made of: variables, functions, links and optimizers.

Users write its modules by Chainer's names, without ``core``: ``renga.variable``.
"""
