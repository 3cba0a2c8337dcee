"""Random calls of every function, compared with NumPy in float64.

``python -m tests.fuzz`` (see ``__main__``) runs for minutes, ``test_fuzz.py`` for
seconds. The calls are those of ``tests/catalogue``.
"""
