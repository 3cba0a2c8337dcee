"""Train a small GPT to write letter by letter, as Python's documentation does.

    python train_gpt.py

The text is what ``help()`` shows for topics, which comes with Python. After 400
batches, in about a minute on two cores, the model continues a text, one letter at a
time, keeping the keys and values of the letters before. The perplexity of the next
letter is printed, and that by knowing only how frequent each letter is.
"""

import argparse
from pydoc_data.topics import topics

import numpy

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.training import extensions

CONTEXT = 128


def load():
    """Letters to train with and to test with, as integers, and the alphabet."""
    names = sorted(topics)
    texts = [topics[name] for name in names]
    test = "\n".join(texts[::10])
    train = "\n".join(text for i, text in enumerate(texts) if i % 10)
    alphabet = sorted(set(train))
    index = {letter: i for i, letter in enumerate(alphabet)}
    train, test = (
        numpy.array([index[c] for c in text if c in index], numpy.int32)
        for text in (train, test)
    )
    return train, test, "".join(alphabet)


def windows(text):
    """Pieces of the text, each with the letters that follow its letters."""
    pieces = text[: (len(text) - 1) // CONTEXT * CONTEXT].reshape(-1, CONTEXT)
    following = text[1 : pieces.size + 1].reshape(-1, CONTEXT)
    return renga.datasets.TupleDataset(pieces, following)


def loss_of(scores, t):
    return F.softmax_cross_entropy(F.reshape(scores, (-1, scores.shape[2])), t.ravel())


def perplexity(result):
    for name in ("main", "validation/main"):
        if f"{name}/loss" in result:
            result[f"{name}/perplexity"] = float(numpy.exp(result[f"{name}/loss"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batchsize", type=int, default=16)
    parser.add_argument("--iteration", type=int, default=400)
    parser.add_argument("--unit", type=int, default=128)
    parser.add_argument("--layer", type=int, default=4)
    parser.add_argument("--prompt", default="The following ")
    parser.add_argument("--length", type=int, default=100, help="letters to write")
    parser.add_argument("--out", default="result", help="folder for what is written")
    args = parser.parse_args()

    numpy.random.seed(0)
    train, test, alphabet = load()
    print(f"{len(train)} letters to train, {len(test)} to test with", end=", ")
    print(f"{len(alphabet)} different ones")
    gpt = L.GPT2(len(alphabet), CONTEXT, args.unit, args.layer, 4, dropout=0.0)
    model = L.Classifier(gpt, loss_of)
    model.compute_accuracy = False
    optimizer = renga.optimizers.AdamW(3e-3, beta2=0.95)
    optimizer.setup(model)
    optimizer.add_hook(renga.optimizer_hooks.GradientClipping(1))

    order = renga.iterators.SerialIterator(windows(train), args.batchsize)
    rest = renga.iterators.SerialIterator(
        windows(test), 32, repeat=False, shuffle=False
    )
    updater = training.updaters.StandardUpdater(order, optimizer)
    trainer = training.Trainer(updater, (args.iteration, "iteration"), out=args.out)
    trainer.extend(
        extensions.OneCycleShift("alpha", args.iteration), trigger=(1, "iteration")
    )
    often = (max(1, args.iteration // 4), "iteration")
    trainer.extend(extensions.Evaluator(rest, model), trigger=often)
    trainer.extend(extensions.LogReport(trigger=often, postprocess=perplexity))
    columns = ["iteration", "main/perplexity", "validation/main/perplexity"]
    trainer.extend(extensions.PrintReport([*columns, "elapsed_time"]), trigger=often)
    trainer.run()
    renga.serializers.save_npz(f"{args.out}/gpt.npz", gpt)

    counts = numpy.bincount(train, minlength=len(alphabet)) + 1
    alone = numpy.exp(-numpy.log(counts / counts.sum())[test].mean())
    print(f"perplexity by how frequent each letter is: {alone:.1f}")
    prompt = numpy.array([[alphabet.index(c) for c in args.prompt]], numpy.int32)
    text = gpt.generate(prompt, args.length, temperature=0.7)
    print("".join(alphabet[i] for i in text[0]))


if __name__ == "__main__":
    main()
