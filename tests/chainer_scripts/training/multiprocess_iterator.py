"""MultiprocessIterator over a data set that computes, with DatasetMixin."""

import os

import chainer
import numpy as np
from chainer import datasets, iterators


class Augmented(chainer.dataset.DatasetMixin):

    def __init__(self, base):
        self.base = base

    def __len__(self):
        return len(self.base)

    def get_example(self, i):
        image = self.base[i]
        return image[::-1].copy(), np.int32(i), os.getpid()


def double(example):
    image, i, pid = example
    return 2 * image, i, pid


def main():
    images = np.arange(12 * 4, dtype=np.float32).reshape(12, 4)
    dataset = datasets.TransformDataset(Augmented(images), double)
    iterator = iterators.MultiprocessIterator(
        dataset, 5, repeat=False, shuffle=False, n_processes=2, n_prefetch=2)
    seen, processes = [], set()
    for batch in iterator:
        x, i, pids = chainer.dataset.concat_examples(batch)
        np.testing.assert_array_equal(x, 2 * images[i][:, ::-1])
        seen += i.tolist()
        processes |= set(pids.tolist())
    iterator.finalize()
    assert processes - {os.getpid()}
    print(seen)


if __name__ == '__main__':
    main()
