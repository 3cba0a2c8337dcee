"""An order of samples that does not depend on how many processes share them."""

import numpy


class SpreadBatches:
    """Every batch is spread evenly over the data set; which comes when, chance decides.

    A rank of P holds one run of neighbours, 1/P of the data, and so 1/P of each batch:
    any number of ranks sees together what one process sees.
    """

    def __init__(self, batch_size, seed=0):
        self.batch_size = batch_size
        self.random = numpy.random.RandomState(seed)

    def __call__(self, order, position):
        batches = numpy.arange(len(order)).reshape(self.batch_size, -1).T
        return self.random.permutation(batches).ravel()
