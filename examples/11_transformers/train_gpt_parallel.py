"""Train the small GPT on several ranks that share each text.

    mpiexec -n 2 python train_gpt_parallel.py
    mpiexec -n 2 python train_gpt_parallel.py --strategy sequence

With ``channel``, each rank has some heads of each attention, some units of each layer
and some letters of the alphabet. With ``sequence``, each rank has all weights but only
some letters of each text, and keys and values travel round the ranks. Both compute what
``train_gpt.py`` computes on one rank. The loss takes the scores where they are: neither
strategy gathers them.
"""

import argparse
import os
import time

import numpy
from train_gpt import CONTEXT, load, windows

import renga
import renga.functions as F
import renga.links as L
from renga.dataset import concat_examples
from renga.distributed import create_communicator, parallelize, scatter_sequence
from renga.distributed.functions import softmax_cross_entropy


def parallel_gpt(gpt, comm, strategy, x):
    """The model, and a function of letters and the next ones that gives the loss."""
    if strategy == "channel":
        gpt = parallelize(gpt, comm, strategy, x, output="sharded")
        layout = "channel"  # each rank has the scores of some letters of the alphabet
    else:
        gpt = parallelize(gpt, comm, strategy, input="sharded")
        layout = "batch"  # each rank has all scores of its letters of the texts

    def loss_of(x, t):
        if strategy == "sequence":
            x, t = scatter_sequence(comm, x), scatter_sequence(comm, t)
        scores = gpt(x)
        rows = F.reshape(scores, (-1, scores.shape[2]))
        return softmax_cross_entropy(comm, rows, t.ravel(), layout)

    return gpt, loss_of


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--strategy", choices=["channel", "sequence"], default="channel"
    )
    parser.add_argument("--communicator", default="mpi")
    parser.add_argument("--batchsize", type=int, default=16)
    parser.add_argument("--iteration", type=int, default=400)
    parser.add_argument("--unit", type=int, default=128)
    parser.add_argument("--layer", type=int, default=4)
    parser.add_argument("--out", default="gpt.npz", help="file of the weights")
    args = parser.parse_args()

    numpy.random.seed(0)
    train, _, alphabet = load()
    data = windows(train)
    comm = create_communicator(args.communicator)
    example = numpy.zeros((args.batchsize, CONTEXT), "i4")
    serial = L.GPT2(len(alphabet), CONTEXT, args.unit, args.layer, 4, dropout=0.0)
    gpt, loss_of = parallel_gpt(serial, comm, args.strategy, example)
    optimizer = renga.optimizers.AdamW(3e-3, beta2=0.95).setup(gpt)
    optimizer.add_hook(renga.optimizer_hooks.GradientClipping(1))

    # Every rank gets the same texts: parallelize gave all the same random numbers.
    order = renga.iterators.SerialIterator(data, args.batchsize)
    begin = time.perf_counter()
    for i in range(1, args.iteration + 1):
        x, t = concat_examples(order.next())
        loss = loss_of(x, t)
        gpt.cleargrads()
        loss.backward()
        optimizer.update()
        if comm.rank == 0 and i % max(1, args.iteration // 4) == 0:
            seconds = (time.perf_counter() - begin) / i
            perplexity = numpy.exp(float(loss.array))
            print(f"batch {i}: perplexity {perplexity:.2f}, {seconds:.3f} s each")
    own = sum(param.size for param in gpt.params())
    if comm.rank == 0:
        print(f"rank 0 has {own / serial.count_params():.0%} of the weights")
    # The file is that of one rank's model; all ranks take part.
    renga.serializers.save_npz(args.out if comm.rank == 0 else os.devnull, gpt)


if __name__ == "__main__":
    main()
