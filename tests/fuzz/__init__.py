"""Random calls of every function, compared with NumPy in float64.

``python -m fuzz`` (see ``__main__``) runs for minutes, ``test_fuzz.py`` for seconds.
"""
