"""Train a network of LSTMs to tell the next word of a text (arXiv 1409.2329).

    python train_language_model.py

Gradients go back through 35 words at most, while the state of the LSTMs goes on to
the end. Without a network the text is Python's documentation: after 5 epochs, in about
16 seconds, the perplexity on texts to test with is 106, where knowing only how frequent
each word is gives 185.
"""

import argparse

import numpy
from words import load

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.training import extensions


class RNN(renga.Chain):
    """Shapes: words (N,) -> scores of the words that may follow (N, words)."""

    def __init__(self, words, units):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(words, units)
            self.l1 = L.LSTM(units, units)
            self.l2 = L.LSTM(units, units)
            self.l3 = L.Linear(units, words)
        for param in self.params():
            param.array[...] = numpy.random.uniform(-0.1, 0.1, param.shape)

    def reset_state(self):
        self.l1.reset_state()
        self.l2.reset_state()

    def forward(self, x):
        h = self.l1(F.dropout(self.embed(x), 0.2))
        h = self.l2(F.dropout(h, 0.2))
        return self.l3(F.dropout(h, 0.2))


class ParallelSequentialIterator(renga.dataset.Iterator):
    """Reads a text at several places; each gives a word and the one that follows."""

    def __init__(self, text, batch_size, repeat=True):
        self.text, self.batch_size, self.repeat = text, batch_size, repeat
        self.places = numpy.arange(batch_size) * (len(text) // batch_size)
        self.reset()

    def reset(self):
        self.iteration = self.epoch = 0
        self.is_new_epoch = False

    @property
    def epoch_detail(self):
        return self.iteration * self.batch_size / len(self.text)

    def __next__(self):
        if not self.repeat and self.epoch_detail >= 1:
            raise StopIteration
        at = (self.places + self.iteration) % len(self.text)
        after = (at + 1) % len(self.text)
        self.iteration += 1
        epoch = int(self.epoch_detail)
        self.is_new_epoch, self.epoch = epoch > self.epoch, epoch
        return list(zip(self.text[at], self.text[after]))


class BPTTUpdater(training.updaters.StandardUpdater):
    """Backpropagation through time, cut after ``length`` words."""

    def __init__(self, iterator, optimizer, length, device=None):
        super().__init__(iterator, optimizer, device=device)
        self.length = length

    def update_core(self):
        iterator, optimizer = self.get_iterator("main"), self.get_optimizer("main")
        loss = 0
        for _ in range(self.length):
            x, t = self.converter(iterator.next(), self.device)
            loss += optimizer.target(x, t)
        optimizer.target.cleargrads()
        loss.backward()
        loss.unchain_backward()
        optimizer.update()


def perplexity(result):
    for name in ("main", "validation/main"):
        if f"{name}/loss" in result:
            result[f"{name}/perplexity"] = float(numpy.exp(result[f"{name}/loss"]))


def unigram_perplexity(train, test, words):
    counts = numpy.bincount(train, minlength=words) + 1
    return numpy.exp(-numpy.log(counts / counts.sum())[test].mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batchsize", type=int, default=20)
    parser.add_argument("--bpttlen", type=int, default=35)
    parser.add_argument("--epoch", type=int, default=5)
    parser.add_argument("--unit", type=int, default=128)
    parser.add_argument("--size", type=int, help="words, also to test with")
    parser.add_argument("--device", default="@numpy", help="or @cupy:0, a GPU")
    parser.add_argument("--out", default="result", help="folder for what is written")
    args = parser.parse_args()

    numpy.random.seed(0)
    train, test, vocabulary = load(args.size)
    model = L.Classifier(RNN(len(vocabulary), args.unit))
    model.compute_accuracy = False
    device = renga.get_device(args.device)
    model.to_device(device)
    optimizer = renga.optimizers.Adam(3e-3)
    optimizer.setup(model)
    optimizer.add_hook(renga.optimizer_hooks.GradientClipping(5))

    train_iter = ParallelSequentialIterator(train, args.batchsize)
    test_iter = ParallelSequentialIterator(test, args.batchsize, repeat=False)
    updater = BPTTUpdater(train_iter, optimizer, args.bpttlen, device)
    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    reader = model.copy()  # has the same parameters and a state of its own
    trainer.extend(
        extensions.Evaluator(
            test_iter,
            reader,
            device=device,
            eval_hook=lambda _: reader.predictor.reset_state(),
        )
    )
    trainer.extend(extensions.LogReport(postprocess=perplexity))
    columns = ["epoch", "main/perplexity", "validation/main/perplexity", "elapsed_time"]
    trainer.extend(extensions.PrintReport(columns))
    trainer.extend(extensions.snapshot_object(model, "model.npz"))
    trainer.run()
    alone = unigram_perplexity(train, test, len(vocabulary))
    print(f"perplexity of words taken each for itself: {alone:.1f}")


if __name__ == "__main__":
    main()
