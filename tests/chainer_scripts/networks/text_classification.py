"""Sequences of words classified by a recurrent, a convolutional and a BoW encoder."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions

embed_init = chainer.initializers.Uniform(.25)


def sequence_embed(embed, xs, dropout=0.):
    x_len = [len(x) for x in xs]
    x_section = np.cumsum(x_len[:-1])
    ex = embed(F.concat(xs, axis=0))
    ex = F.dropout(ex, ratio=dropout)
    return F.split_axis(ex, x_section, 0)


def block_embed(embed, x, dropout=0.):
    e = F.dropout(embed(x), ratio=dropout)
    e = F.transpose(e, (0, 2, 1))
    return e[:, :, :, None]


class RNNEncoder(chainer.Chain):

    def __init__(self, n_layers, n_vocab, n_units, dropout=0.1):
        super(RNNEncoder, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units, initialW=embed_init)
            self.encoder = L.NStepLSTM(n_layers, n_units, n_units, dropout)
        self.out_units = n_units

    def forward(self, xs):
        exs = sequence_embed(self.embed, xs)
        last_h, last_c, ys = self.encoder(None, None, exs)
        return last_h[-1]


class CNNEncoder(chainer.Chain):

    def __init__(self, n_layers, n_vocab, n_units, dropout=0.1):
        super(CNNEncoder, self).__init__(
            embed=L.EmbedID(
                n_vocab, n_units, ignore_label=-1, initialW=embed_init),
            cnn_w3=L.Convolution2D(
                n_units, n_units, ksize=(3, 1), stride=1, pad=(2, 0)))
        self.out_units = n_units
        self.dropout = dropout

    def forward(self, xs):
        x_block = chainer.dataset.convert.concat_examples(xs, padding=-1)
        ex_block = block_embed(self.embed, x_block, self.dropout)
        return F.squeeze(F.max(F.relu(self.cnn_w3(ex_block)), axis=2), 2)


class BOWEncoder(chainer.Chain):

    def __init__(self, n_layers, n_vocab, n_units, dropout=0.1):
        super(BOWEncoder, self).__init__(
            embed=L.EmbedID(
                n_vocab, n_units, ignore_label=-1, initialW=embed_init))
        self.out_units = n_units

    def forward(self, xs):
        x_block = chainer.dataset.convert.concat_examples(xs, padding=-1)
        ex_block = block_embed(self.embed, x_block)
        x_len = self.xp.array([len(x) for x in xs], np.int32)[:, None, None]
        return F.sum(ex_block, axis=2)[:, :, 0] / x_len[:, :, 0]


class TextClassifier(chainer.Chain):

    def __init__(self, encoder, n_class, dropout=0.1):
        super(TextClassifier, self).__init__()
        with self.init_scope():
            self.encoder = encoder
            self.output = L.Linear(encoder.out_units, n_class)
        self.dropout = dropout

    def forward(self, xs, ys):
        concat_outputs = self.predict(xs)
        concat_truths = F.concat(ys, axis=0)
        loss = F.softmax_cross_entropy(concat_outputs, concat_truths)
        accuracy = F.accuracy(concat_outputs, concat_truths)
        chainer.report({'loss': loss, 'accuracy': accuracy}, self)
        return loss

    def predict(self, xs, softmax=False, argmax=False):
        out = self.output(F.dropout(self.encoder(xs), ratio=self.dropout))
        if softmax:
            return F.softmax(out).array
        if argmax:
            return self.xp.argmax(out.array, axis=1)
        return out


@chainer.dataset.converter()
def convert_seq(batch, device):
    def to_device_batch(batch):
        if device is None:
            return batch
        return [device.send(x) for x in batch]

    return {'xs': to_device_batch([x for x, _ in batch]),
            'ys': to_device_batch([y for _, y in batch])}


def main():
    np.random.seed(0)
    data = []
    for i in range(200):
        label = i % 2
        words = np.random.randint(2, 10, np.random.randint(4, 9))
        words[np.random.randint(len(words))] = label
        data.append((words.astype('i'), np.array([label], 'i')))
    train, test = data[:160], data[160:]
    accuracies = []
    for Encoder in (RNNEncoder, CNNEncoder, BOWEncoder):
        train_iter = chainer.iterators.SerialIterator(train, 20)
        test_iter = chainer.iterators.SerialIterator(
            test, 20, repeat=False, shuffle=False)
        model = TextClassifier(Encoder(1, 10, 24), 2)
        optimizer = chainer.optimizers.Adam(0.02)
        optimizer.setup(model)
        optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))
        updater = training.updaters.StandardUpdater(
            train_iter, optimizer, converter=convert_seq, device='@numpy')
        trainer = training.Trainer(updater, (15, 'epoch'), out='result')
        trainer.extend(extensions.Evaluator(
            test_iter, model, converter=convert_seq, device='@numpy'))
        record_trigger = training.triggers.MaxValueTrigger(
            'validation/main/accuracy', (1, 'epoch'))
        trainer.extend(extensions.snapshot_object(
            model, 'best_model.npz'), trigger=record_trigger)
        trainer.extend(extensions.LogReport())
        trainer.run()
        chainer.serializers.load_npz('result/best_model.npz', model)
        with chainer.using_config('train', False), chainer.no_backprop_mode():
            answers = model.predict([x for x, _ in test], argmax=True)
        truths = np.array([int(y[0]) for _, y in test])
        accuracies.append((answers == truths).mean())
    print('accuracy %.3f' % min(accuracies))


if __name__ == '__main__':
    main()
