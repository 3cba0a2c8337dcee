"""A language model of the Penn Treebank as Chainer caches it, with BPTT."""
import os
import tempfile

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions


def prepare():
    """A small corpus in the folder where Chainer keeps the prepared one."""
    root = tempfile.mkdtemp()
    os.environ['CHAINER_DATASET_ROOT'] = root
    chainer.dataset.set_dataset_root(root)
    folder = chainer.dataset.get_dataset_directory('pfnet/chainer/ptb')
    words = np.tile(np.array([0, 1, 2, 3, 4, 2, 5], 'i'), 60)
    for split in ('train', 'valid', 'test'):
        np.savez_compressed(os.path.join(folder, split + '.npz'), x=words)
    with open(os.path.join(folder, 'vocab.txt'), 'w') as f:
        f.write('\n'.join(['a', 'b', 'c', 'd', 'e', '<eos>']) + '\n')


class RNNForLM(chainer.Chain):

    def __init__(self, n_vocab, n_units):
        super(RNNForLM, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units)
            self.l1 = L.LSTM(n_units, n_units)
            self.l2 = L.Linear(n_units, n_vocab)

    def reset_state(self):
        self.l1.reset_state()

    def forward(self, x):
        h0 = self.embed(x)
        h1 = self.l1(F.dropout(h0, 0.1))
        return self.l2(F.dropout(h1, 0.1))


class ParallelSequentialIterator(chainer.dataset.Iterator):

    def __init__(self, dataset, batch_size, repeat=True):
        super(ParallelSequentialIterator, self).__init__()
        self.dataset = dataset
        self.batch_size = batch_size
        self.repeat = repeat
        length = len(dataset)
        self.offsets = [i * length // batch_size for i in range(batch_size)]
        self.reset()

    def reset(self):
        self.epoch = 0
        self.is_new_epoch = False
        self.iteration = 0
        self._previous_epoch_detail = -1.

    def __next__(self):
        length = len(self.dataset)
        if not self.repeat and self.iteration * self.batch_size >= length:
            raise StopIteration
        cur_words = self.get_words()
        self._previous_epoch_detail = self.epoch_detail
        self.iteration += 1
        next_words = self.get_words()
        epoch = self.iteration * self.batch_size // length
        self.is_new_epoch = self.epoch < epoch
        if self.is_new_epoch:
            self.epoch = epoch
        return list(zip(cur_words, next_words))

    @property
    def epoch_detail(self):
        return self.iteration * self.batch_size / len(self.dataset)

    @property
    def previous_epoch_detail(self):
        if self._previous_epoch_detail < 0:
            return None
        return self._previous_epoch_detail

    def get_words(self):
        return [self.dataset[(offset + self.iteration) % len(self.dataset)]
                for offset in self.offsets]

    def serialize(self, serializer):
        self.iteration = serializer('iteration', self.iteration)
        self.epoch = serializer('epoch', self.epoch)


class BPTTUpdater(training.updaters.StandardUpdater):

    def __init__(self, train_iter, optimizer, bprop_len, device):
        super(BPTTUpdater, self).__init__(train_iter, optimizer, device=device)
        self.bprop_len = bprop_len

    def update_core(self):
        loss = 0
        train_iter = self.get_iterator('main')
        optimizer = self.get_optimizer('main')
        for i in range(self.bprop_len):
            batch = train_iter.__next__()
            x, t = self.converter(batch, self.device)
            loss += optimizer.target(x, t)
        optimizer.target.cleargrads()
        loss.backward()
        loss.unchain_backward()
        optimizer.update()


def compute_perplexity(result):
    result['perplexity'] = np.exp(result['main/loss'])
    if 'validation/main/loss' in result:
        result['val_perplexity'] = np.exp(result['validation/main/loss'])


def main():
    np.random.seed(0)
    prepare()
    train, val, test = chainer.datasets.get_ptb_words()
    n_vocab = max(train) + 1
    assert len(chainer.datasets.get_ptb_words_vocabulary()) == n_vocab
    train_iter = ParallelSequentialIterator(train, 4)
    val_iter = ParallelSequentialIterator(val, 1, repeat=False)

    rnn = RNNForLM(n_vocab, 16)
    model = L.Classifier(rnn)
    model.compute_accuracy = False
    optimizer = chainer.optimizers.Adam(0.01)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(5))

    updater = BPTTUpdater(train_iter, optimizer, 7, -1)
    trainer = training.Trainer(updater, (6, 'epoch'), out='result')
    eval_model = model.copy()
    eval_rnn = eval_model.predictor
    trainer.extend(extensions.Evaluator(
        val_iter, eval_model, device=-1,
        eval_hook=lambda _: eval_rnn.reset_state()))
    log = extensions.LogReport(postprocess=compute_perplexity)
    trainer.extend(log)
    trainer.extend(extensions.PrintReport(
        ['epoch', 'iteration', 'perplexity', 'val_perplexity']))
    trainer.run()
    print('perplexity %.3f' % log.log[-1]['val_perplexity'])


if __name__ == '__main__':
    main()
