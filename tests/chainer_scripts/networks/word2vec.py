"""Skip-gram and CBOW with negative sampling and hierarchical softmax."""
import collections

import chainer
import chainer.functions as F
import chainer.initializers as I
import chainer.links as L
import numpy as np
from chainer import reporter, training
from chainer.training import extensions


class ContinuousBoW(chainer.Chain):

    def __init__(self, n_vocab, n_units, loss_func):
        super(ContinuousBoW, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(
                n_vocab, n_units, initialW=I.Uniform(1. / n_units))
            self.loss_func = loss_func

    def forward(self, x, contexts):
        e = self.embed(contexts)
        h = F.sum(e, axis=1) * (1. / contexts.shape[1])
        loss = self.loss_func(h, x)
        reporter.report({'loss': loss}, self)
        return loss


class SkipGram(chainer.Chain):

    def __init__(self, n_vocab, n_units, loss_func):
        super(SkipGram, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(
                n_vocab, n_units, initialW=I.Uniform(1. / n_units))
            self.loss_func = loss_func

    def forward(self, x, contexts):
        e = self.embed(contexts)
        batch_size, n_context, n_units = e.shape
        x = F.broadcast_to(x[:, None], (batch_size, n_context))
        e = F.reshape(e, (batch_size * n_context, n_units))
        x = F.reshape(x, (batch_size * n_context,))
        loss = self.loss_func(e, x)
        reporter.report({'loss': loss}, self)
        return loss


class WindowIterator(chainer.dataset.Iterator):

    def __init__(self, dataset, window, batch_size, repeat=True):
        self.dataset = np.array(dataset, np.int32)
        self.window = window
        self.batch_size = batch_size
        self._repeat = repeat
        self.order = np.random.permutation(
            len(dataset) - window * 2).astype(np.int32)
        self.order += window
        self.current_position = 0
        self.epoch = 0
        self.is_new_epoch = False

    def __next__(self):
        i = self.current_position
        i_end = i + self.batch_size
        position = self.order[i:i_end]
        w = np.random.randint(self.window - 1) + 1
        offset = np.concatenate([np.arange(-w, 0), np.arange(1, w + 1)])
        pos = position[:, None] + offset[None, :]
        contexts = self.dataset.take(pos)
        center = self.dataset.take(position)
        if i_end >= len(self.order):
            np.random.shuffle(self.order)
            self.epoch += 1
            self.is_new_epoch = True
            self.current_position = 0
        else:
            self.is_new_epoch = False
            self.current_position = i_end
        return center, contexts

    @property
    def epoch_detail(self):
        return self.epoch + float(self.current_position) / len(self.order)

    def serialize(self, serializer):
        self.current_position = serializer(
            'current_position', self.current_position)


@chainer.dataset.converter()
def convert(batch, device):
    center, contexts = batch
    return device.send(center), device.send(contexts)


def train_with(model_class, loss_func, words, n_vocab):
    model = model_class(n_vocab, 8, loss_func)
    optimizer = chainer.optimizers.Adam(0.02)
    optimizer.setup(model)
    updater = training.updaters.StandardUpdater(
        WindowIterator(words, 3, 50), optimizer, converter=convert,
        device='@numpy')
    trainer = training.Trainer(updater, (8, 'epoch'), out='result')
    log = extensions.LogReport()
    trainer.extend(log)
    trainer.run()
    return log.log[0]['main/loss'] > log.log[-1]['main/loss']


def main():
    np.random.seed(0)
    words = (np.arange(400) * 3 + np.arange(400) // 7) % 12
    n_vocab = int(words.max()) + 1
    counts = collections.Counter(words.tolist())
    falls = []
    for model_class in (SkipGram, ContinuousBoW):
        cs = [counts[w] for w in range(len(counts))]
        negative = L.NegativeSampling(8, cs, 3)
        negative.W.array[...] = 0
        tree = L.BinaryHierarchicalSoftmax.create_huffman_tree(counts)
        hierarchical = L.BinaryHierarchicalSoftmax(8, tree)
        hierarchical.W.array[...] = 0
        for loss_func in (negative, hierarchical):
            falls.append(train_with(model_class, loss_func, words, n_vocab))
    print('losses fall: %s' % all(falls))


if __name__ == '__main__':
    main()
