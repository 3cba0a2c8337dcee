"""Data-parallel training: how the ranks' gradients become their mean.

``reducer.py`` has the interface. Each kind of reducer, and each of its parts, is one
file.
"""
