"""Sequences of bools, and None on its way to a device."""

import chainer
import chainer.functions as F
import numpy as np
from chainer import testing

ONE, TWO = np.array([True]), np.array([True, False])
COLUMNS = np.array([[True, False]]), np.array([[False, True], [True, True]])
CPU = chainer.get_device("@numpy")

EXPRESSIONS = """
    F.pad_sequence([ONE, TWO])
    F.pad_sequence([TWO, ONE], padding=-1)
    F.pad_sequence([TWO, ONE], padding=0.5)
    F.pad_sequence([ONE, TWO], length=4, padding=True)
    F.pad_sequence([ONE, TWO], length=1)
    F.pad_sequence(COLUMNS, padding=1)
    F.pad_sequence([ONE, np.array([1, 2])])
    F.pad_sequence([chainer.Variable(TWO), ONE])
    CPU.send(None)
    CPU.send([None])
    CPU.send((np.ones(2), None))
    testing.BackendConfig({}).get_array(None)
"""
