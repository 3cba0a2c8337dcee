"""Sequences reversed by an encoder and a decoder on several processes."""
import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import numpy as np
from chainer import training
from chainer.training import extensions

EOS = 0


class Seq2seq(chainer.Chain):

    def __init__(self, n_layers, n_vocab, n_units):
        super(Seq2seq, self).__init__()
        with self.init_scope():
            self.embed_x = L.EmbedID(n_vocab, n_units)
            self.embed_y = L.EmbedID(n_vocab, n_units)
            self.encoder = L.NStepLSTM(n_layers, n_units, n_units, 0.)
            self.decoder = L.NStepLSTM(n_layers, n_units, n_units, 0.)
            self.W = L.Linear(n_units, n_vocab)

    def forward(self, *inputs):
        xs = [x[::-1] for x in inputs[:len(inputs) // 2]]
        ys = inputs[len(inputs) // 2:]
        eos = self.xp.array([EOS], np.int32)
        ys_in = [F.concat([eos, y], axis=0) for y in ys]
        ys_out = [F.concat([y, eos], axis=0) for y in ys]
        exs = self.embed(self.embed_x, xs)
        eys = self.embed(self.embed_y, ys_in)
        hx, cx, _ = self.encoder(None, None, exs)
        _, _, os = self.decoder(hx, cx, eys)
        concat_os = F.concat(os, axis=0)
        concat_ys_out = F.concat(ys_out, axis=0)
        loss = F.sum(F.softmax_cross_entropy(
            self.W(concat_os), concat_ys_out, reduce='no')) / len(xs)
        n_words = concat_ys_out.shape[0]
        perp = self.xp.exp(loss.array * len(xs) / n_words)
        chainer.report({'loss': loss, 'perp': perp}, self)
        return loss

    @staticmethod
    def embed(embed, xs):
        section = np.cumsum([len(x) for x in xs])[:-1]
        return F.split_axis(embed(F.concat(xs, axis=0)), section, 0)


def convert(batch, device):
    return tuple([x for x, _ in batch] + [y for _, y in batch])


def main():
    comm = chainermn.create_communicator('naive')
    np.random.seed(0)
    data = None
    if comm.rank == 0:
        data = []
        for _ in range(160):
            x = np.random.randint(1, 6, np.random.randint(2, 4)).astype('i')
            data.append((x, x[::-1].copy()))
    data = chainermn.scatter_dataset(data, comm, shuffle=True, seed=0)
    model = Seq2seq(1, 6, 32)
    optimizer = chainermn.create_multi_node_optimizer(
        chainer.optimizers.Adam(0.02), comm)
    optimizer.setup(model)
    iterator = chainer.iterators.SerialIterator(data, 20)
    updater = training.updaters.StandardUpdater(
        iterator, optimizer, converter=convert)
    trainer = training.Trainer(updater, (25, 'epoch'), out='result')
    trainer.extend(chainermn.extensions.ObservationAggregator(
        comm, 'main/perp', 'mean_perp'))
    log = extensions.LogReport()
    if comm.rank == 0:
        trainer.extend(log)
    trainer.run()
    if comm.rank == 0:
        print('perplexity %.3f' % log.log[-1]['main/perp'])


if __name__ == '__main__':
    main()
