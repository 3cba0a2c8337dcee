"""Teach the small GPT another kind of text, by few parameters, on several ranks.

    python train_gpt.py
    renga run -n 2 fine_tune_gpt.py

``train_gpt.py`` has learned Python's documentation; this program teaches it Python's
source code. All parameters stay as they are. Beside each weight of a linear layer, LoRA
trains a product of two small matrices. Each rank takes a share of the texts. The
perplexity of the next letter is printed on the way, for code that is not trained with.
The file that is written has the small matrices alone.
"""

import argparse
import importlib
import inspect

import numpy
from train_gpt import CONTEXT, load, loss_of, perplexity, windows

import renga
import renga.links as L
from renga import distributed, training
from renga.link_hooks import LoRA
from renga.training import extensions

TRAIN = "argparse ast calendar configparser csv dataclasses datetime doctest enum"
TRAIN += " fractions ftplib inspect ipaddress locale logging mailbox optparse pathlib"
TEST = "difflib heapq textwrap"


def code(names, alphabet):
    """The source code of modules, as integers."""
    index = {letter: i for i, letter in enumerate(alphabet)}
    texts = [inspect.getsource(importlib.import_module(n)) for n in names.split()]
    return numpy.array([index[c] for c in "\n".join(texts) if c in index], "i4")


def load_gpt(file, alphabet):
    """The model of ``train_gpt.py``, whose sizes are those of its arrays."""
    with numpy.load(file) as arrays:
        width = arrays["tokens/W"].shape[1]
        layers = sum(name.endswith("/up/W") for name in arrays)
    gpt = L.GPT2(len(alphabet), CONTEXT, width, layers, 4, dropout=0.0)
    renga.serializers.load_npz(file, gpt)
    return gpt


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="result/gpt.npz", help="of train_gpt.py")
    parser.add_argument("--rank", type=int, default=8, help="of the matrices")
    parser.add_argument("--batchsize", type=int, default=8, help="of each process")
    parser.add_argument("--iteration", type=int, default=300)
    parser.add_argument("--out", default="result", help="folder for what is written")
    args = parser.parse_args()

    comm = distributed.create_communicator()
    _, _, alphabet = load()
    gpt = load_gpt(args.model, alphabet)
    for link in list(gpt.links()):
        if isinstance(link, L.Linear):
            link.add_hook(LoRA(args.rank))
    model = L.Classifier(gpt, loss_of)
    model.compute_accuracy = False
    optimizer = renga.optimizers.AdamW(5e-3)
    optimizer = distributed.create_multi_node_optimizer(optimizer, comm).setup(model)
    added = {}
    for name, param in gpt.namedparams():
        is_added = name.endswith(("/W_A", "/W_B"))
        param.update_rule.enabled = is_added
        if is_added:
            added[name.strip("/")] = param

    data = windows(code(TRAIN, alphabet))
    data = distributed.scatter_dataset(data, comm, shuffle=True, seed=0)
    order = renga.iterators.SerialIterator(data, args.batchsize)
    rest = renga.iterators.SerialIterator(
        windows(code(TEST, alphabet)), 32, repeat=False, shuffle=False
    )
    updater = training.updaters.StandardUpdater(order, optimizer)
    trainer = training.Trainer(updater, (args.iteration, "iteration"), out=args.out)
    if comm.rank == 0:
        evaluator = extensions.Evaluator(rest, model)
        before = float(numpy.exp(evaluator()["main/loss"]))
        often = (max(1, args.iteration // 4), "iteration")
        trainer.extend(evaluator, trigger=often)
        trainer.extend(extensions.LogReport(trigger=often, postprocess=perplexity))
        columns = ["iteration", "main/perplexity", "validation/main/perplexity"]
        trainer.extend(extensions.PrintReport([*columns, "elapsed_time"]), often)
        share = sum(p.size for p in added.values()) / gpt.count_params()
        print(f"{share:.1%} of the parameters are trained")
        print(f"perplexity of code before: {before:.2f}")
    trainer.run()
    if comm.rank == 0:
        arrays = {name: param.array for name, param in added.items()}
        numpy.savez(f"{args.out}/adapters.npz", **arrays)


if __name__ == "__main__":
    main()
