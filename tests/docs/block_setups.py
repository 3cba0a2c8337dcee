"""What the blocks of some pages assume to exist already: the reader's own program.

For each page the number of ranks, and code that runs before its first block.
"""

# Data, a model, an optimizer and a trainer of the reader's.
_PROGRAM = """
import numpy
import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.distributed import create_communicator, create_multi_node_optimizer
from renga.distributed import parallelize

comm = create_communicator()
numpy.random.seed(0)
images = numpy.random.random((32, 3, 8, 8)).astype("f")
labels = numpy.zeros(32, "i")


def VGG():
    return renga.Sequential(
        L.Convolution2D(3, 4, 3, pad=1), L.BatchNormalization(4), F.relu,
        L.Convolution2D(4, 4, 3, pad=1), F.relu, L.Linear(None, 10),
    )


def UNet():
    return renga.Sequential(
        L.Convolution2D(3, 4, 3, pad=1), F.relu, L.Convolution2D(4, 64, 3, pad=1)
    )


x, t = images, labels
"""
_TRAINER = """
model = L.Classifier(VGG())
optimizer = renga.optimizers.SGD().setup(model)
iterator = renga.iterators.SerialIterator(list(zip(images, labels)), 32)
updater = training.StandardUpdater(iterator, optimizer)
trainer = training.Trainer(updater, (1, "iteration"))
"""

SETUPS = {
    "distributed_training.md": (1, _PROGRAM + _TRAINER),
    "compression.md": (
        2,
        _PROGRAM
        + "model = L.Classifier(VGG())\n"
        # The setup is as if each rank were a node.
        + "comm.inter_rank, comm.inter_size, comm.intra_rank = comm.rank, 2, 0\n",
    ),
    "asynchronous.md": (
        2,
        _PROGRAM
        + _TRAINER
        + "layers = L.EmbedID(100, 8), lambda h: F.sum(h, 1), L.Linear(8, 2)\n"
        + "embedding = L.Classifier(renga.Sequential(*layers))\n"
        + "words = numpy.random.randint(0, 100, (4, 6)).astype('i')\n",
    ),
    "communicators.md": (
        2,
        _PROGRAM
        + "x = numpy.ones(1000, 'f')\ntrain = lambda comm: comm.all_reduce(x)\n"
        + "y, source, dest, tag = x + 1, 1 - comm.rank, 1 - comm.rank, 0\n",
    ),
    "model_parallel.md": (
        4,
        _PROGRAM
        + "optimizer = renga.optimizers.SGD()\nmodel = VGG()\n"
        + "images = numpy.random.random((2, 64, 16, 16)).astype('f')\n"
        + "x, t = x[:2, :, :4, :4], numpy.zeros((2, 64, 4, 4), 'f')\n",
    ),
    "transformers.md": (
        4,
        _PROGRAM
        + "gpt2 = L.GPT2\n"
        + "L.GPT2 = lambda vocabulary, context: gpt2(vocabulary, context, 16, 1, 2)\n"
        + "vocabulary, context = 11, 8\n"
        + "texts = following = numpy.arange(16, dtype='i').reshape(2, 8) % 11\n",
    ),
    "optuna.md": (
        1,
        _PROGRAM + "train_and_evaluate = lambda lr, comm: lr\n",
    ),
    "pipeline.md": (2, _PROGRAM + _TRAINER),
    # Searches that take a minute find little more than those of a tenth of a second.
    "planning.md": (
        2,
        _PROGRAM
        + "from renga import planning\n"
        + "from renga.planning import networks\n"
        + "search, resnet_of = planning.search, networks.resnet\n"
        + "planning.search = lambda *args, **options: search(\n"
        + "    *args, **{**options, 'seconds': 0.1}\n"
        + ")\n"
        + "networks.resnet = lambda: resnet_of(blocks=(1, 1, 1, 1))\n"
        + "model = VGG()\n",
    ),
}

# Pages whose blocks are pieces of files of this repository.
FRAGMENTS = {"adding_an_op.md"}
