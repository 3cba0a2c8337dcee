"""Train an encoder and a decoder of LSTMs to write dates by ISO 8601 (arXiv 1409.3215).

    python train_seq2seq.py

The dates are made up, as "sat, 21 november 2026" or in other ways, and read and written
letter by letter: "2026-11-21". After 5 epochs, in about 40 seconds, 97 % of those to
test with are right in every letter.
"""

import argparse
import datetime

import numpy

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.dataset import DatasetMixin
from renga.training import extensions

FORMATS = ["%A, %d %B %Y", "%a %d %b %Y", "%B %d, %Y", "%d.%m.%Y", "%Y/%m/%d"]
END, LETTERS = 0, "\n abcdefghijklmnopqrstuvwxyz0123456789,./-"


def to_ids(text):
    return numpy.array([LETTERS.index(c) for c in text], numpy.int32)


class Dates(DatasetMixin):
    """Pairs of a date in any of the formats and in that of ISO 8601."""

    def __init__(self, count, seed):
        random = numpy.random.RandomState(seed)
        first, last = (datetime.date(y, 1, 1).toordinal() for y in (1950, 2050))
        self.days = random.randint(first, last, count)
        self.formats = random.randint(len(FORMATS), size=count)

    def __len__(self):
        return len(self.days)

    def texts(self, i):
        date = datetime.date.fromordinal(int(self.days[i]))
        return date.strftime(FORMATS[self.formats[i]]).lower(), date.isoformat()

    def get_example(self, i):
        return tuple(map(to_ids, self.texts(i)))


def convert(batch, device):
    xs, ys = zip(*batch)
    return {"xs": list(xs), "ys": list(ys)}


class Seq2seq(renga.Chain):
    """The loss of sequences ys, told from sequences xs of other lengths."""

    def __init__(self, letters, units, layers=1):
        super().__init__()
        with self.init_scope():
            self.embed_x = L.EmbedID(letters, units)
            self.embed_y = L.EmbedID(letters, units)
            self.encoder = L.NStepLSTM(layers, units, units, 0)
            self.decoder = L.NStepLSTM(layers, units, units, 0)
            self.out = L.Linear(units, letters)

    def embed(self, link, sequences):
        lengths = numpy.cumsum([len(s) for s in sequences])[:-1]
        return F.split_axis(link(F.concat(sequences, 0)), lengths, 0)

    def forward(self, xs, ys):
        end = numpy.array([END], numpy.int32)
        before = [numpy.r_[end, y] for y in ys]
        after = numpy.concatenate([numpy.r_[y, end] for y in ys])
        h, c, _ = self.encoder(None, None, self.embed(self.embed_x, xs))
        _, _, hs = self.decoder(h, c, self.embed(self.embed_y, before))
        scores = self.out(F.concat(hs, 0))
        loss = F.softmax_cross_entropy(scores, after)
        renga.report({"loss": loss, "letters": F.accuracy(scores, after)}, self)
        return loss

    def translate(self, xs, longest=20):
        """The likeliest letter after letter, up to the end of each sequence."""
        with renga.using_config("train", False), renga.no_backprop_mode():
            h, c, _ = self.encoder(None, None, self.embed(self.embed_x, xs))
            y = numpy.full(len(xs), END, numpy.int32)
            written = []
            for _ in range(longest):
                h, c, hs = self.decoder(h, c, F.split_axis(self.embed_y(y), len(xs), 0))
                y = self.out(F.concat(hs, 0)).array.argmax(1).astype(numpy.int32)
                written.append(y)
        texts = ("".join(LETTERS[i] for i in ids) for ids in numpy.transpose(written))
        return [text.partition(LETTERS[END])[0] for text in texts]


def exactness(model, dates):
    """An extension that reports the fraction of dates with all letters right."""
    xs = [x for x, _ in dates]
    right = [dates.texts(i)[1] for i in range(len(dates))]

    @training.make_extension(trigger=(1, "epoch"), priority=training.PRIORITY_WRITER)
    def measure(trainer):
        said = model.translate(xs)
        renga.report({"right": numpy.mean([a == b for a, b in zip(said, right)])})

    return measure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batchsize", type=int, default=64)
    parser.add_argument("--epoch", type=int, default=5)
    parser.add_argument("--unit", type=int, default=128)
    parser.add_argument("--size", type=int, default=6400, help="dates to train with")
    parser.add_argument("--out", default="result", help="folder for what is written")
    args = parser.parse_args()

    numpy.random.seed(0)
    train, test = Dates(args.size, 1), Dates(200, 2)
    model = Seq2seq(len(LETTERS), args.unit)
    optimizer = renga.optimizers.Adam(5e-3)
    optimizer.setup(model)
    optimizer.add_hook(renga.optimizer_hooks.GradientClipping(5))

    train_iter = renga.iterators.SerialIterator(train, args.batchsize)
    updater = training.updaters.StandardUpdater(
        train_iter, optimizer, converter=convert
    )
    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    trainer.extend(exactness(model, test))
    trainer.extend(extensions.LogReport())
    columns = ["epoch", "main/loss", "main/letters", "right", "elapsed_time"]
    trainer.extend(extensions.PrintReport(columns))
    trainer.extend(extensions.snapshot_object(model, "model.npz"))
    trainer.run()

    for (read, _), written in zip(
        map(test.texts, range(6)), model.translate([test[i][0] for i in range(6)])
    ):
        print(f"{read:>28} -> {written}")


if __name__ == "__main__":
    main()
