"""A recursive network over trees, as Chainer's sentiment example."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import reporter, training
from chainer.training import extensions


class RecursiveNet(chainer.Chain):

    def __init__(self, n_vocab, n_units, n_label):
        super(RecursiveNet, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units)
            self.l = L.Linear(n_units * 2, n_units)
            self.w = L.Linear(n_units, n_label)

    def leaf(self, x):
        return self.embed(x)

    def node(self, left, right):
        return F.tanh(self.l(F.concat((left, right))))

    def label(self, v):
        return self.w(v)

    def forward(self, x):
        accum_loss = 0.0
        result = collections_of_counts()
        for tree in x:
            loss, _ = self.traverse(tree, evaluate=result, root=True)
            accum_loss += loss
        reporter.report({'loss': accum_loss}, self)
        reporter.report({'total': result['total_node']}, self)
        reporter.report({'correct': result['correct_node']}, self)
        return accum_loss

    def traverse(self, node, evaluate=None, root=False):
        if isinstance(node['node'], int):
            word = np.array([node['node']], np.int32)
            loss, v = 0, self.leaf(word)
        else:
            left_node, right_node = node['node']
            left_loss, left = self.traverse(left_node, evaluate)
            right_loss, right = self.traverse(right_node, evaluate)
            v = self.node(left, right)
            loss = left_loss + right_loss
        y = self.label(v)
        t = np.array([node['label']], np.int32)
        loss += F.softmax_cross_entropy(y, t)
        predict = y.array.argmax(1)
        evaluate['correct_node'] += int((predict == t).sum())
        evaluate['total_node'] += 1
        return loss, v


def collections_of_counts():
    return {'total_node': 0, 'correct_node': 0}


def convert_tree(depth, words):
    if depth == 0:
        word = int(words.randint(6))
        return {'label': word % 2, 'node': word}
    left, right = convert_tree(depth - 1, words), convert_tree(depth - 1, words)
    return {'label': left['label'] ^ right['label'] ^ 1, 'node': (left, right)}


def convert(batch, _):
    return batch


def main():
    np.random.seed(0)
    words = np.random.RandomState(1)
    trees = [convert_tree(1, words) for _ in range(60)]
    train_iter = chainer.iterators.SerialIterator(trees, 10)
    test_iter = chainer.iterators.SerialIterator(
        trees[:20], 10, repeat=False, shuffle=False)
    model = RecursiveNet(6, 8, 2)
    optimizer = chainer.optimizers.Adam(0.02)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(0.0001))
    updater = training.updaters.StandardUpdater(
        train_iter, optimizer, converter=lambda b, d: (convert(b, d),))
    trainer = training.Trainer(updater, (20, 'epoch'), out='result')
    trainer.extend(extensions.Evaluator(
        test_iter, model, converter=lambda b, d: (convert(b, d),)))
    # The validation's counts are reported at the end of epochs only.
    trainer.extend(extensions.MicroAverage(
        'main/correct', 'main/total', 'main/accuracy'))
    trainer.extend(extensions.MicroAverage(
        'validation/main/correct', 'validation/main/total',
        'validation/main/accuracy'))
    log = extensions.LogReport()
    trainer.extend(log)
    trainer.extend(extensions.PrintReport(
        ['epoch', 'main/loss', 'main/accuracy', 'validation/main/accuracy']))
    trainer.run()
    print('accuracy %.3f' % log.log[-1]['validation/main/accuracy'])


if __name__ == '__main__':
    main()
