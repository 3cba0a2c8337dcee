"""Train a graph network to tell the energy of molecules from their atoms and bonds.

    python train_molecules.py

The molecules are made up: trees of carbon, nitrogen and oxygen atoms, some of whose
branches are closed to rings. The energy is a sum over the bonds, which depends on their
order and both atoms. After 20 epochs, in three seconds, it is known to 0.1 on average;
from the numbers of atoms and bonds of each kind alone, to 1.5.
"""

import argparse

import numpy

import renga
import renga.functions as F
import renga.links as L
from renga import training
from renga.datasets import TupleDataset
from renga.training import extensions

VALENCES = [4, 3, 2]  # of carbon, nitrogen, oxygen
ATOMS, ORDERS = 12, 2  # at most; single and double bonds
NO_ATOM = -1
_random = numpy.random.RandomState(0)
# Energies are by order and atoms; they are the same for both directions.
ENERGIES = _random.uniform(0, 3, (ORDERS, 3, 3))
ENERGIES += ENERGIES.transpose(0, 2, 1)


def make_molecule(random):
    """Kinds of atoms (atoms,), bonds (orders, atoms, atoms) and the energy."""
    count = random.randint(6, ATOMS + 1)
    atoms = numpy.full(ATOMS, NO_ATOM, numpy.int32)
    atoms[:count] = random.choice(3, count, p=[0.6, 0.2, 0.2])
    free = [VALENCES[kind] for kind in atoms[:count]]
    bonds = numpy.zeros((ORDERS, ATOMS, ATOMS), numpy.float32)

    def bind(i, j):
        order = 1 + int(min(free[i], free[j]) > 1 and random.rand() < 0.3)
        free[i] -= order
        free[j] -= order
        bonds[order - 1, [i, j], [j, i]] = 1

    for i in range(1, count):
        open_atoms = [j for j in range(i) if free[j] > 0]
        if open_atoms:
            bind(i, random.choice(open_atoms))
    for _ in range(2):  # rings
        i, j = random.choice(count, 2, replace=False)
        if free[i] > 0 and free[j] > 0 and not bonds[:, i, j].any():
            bind(i, j)
    energy = numpy.einsum("oij,oij->", bonds, ENERGIES[:, atoms][:, :, atoms]) / 2
    return atoms, bonds, numpy.float32([energy])


def make_data(count, seed):
    random = numpy.random.RandomState(seed)
    return TupleDataset(*zip(*(make_molecule(random) for _ in range(count))))


def error_by_counts(train, test):
    """The mean error of a linear fit to the numbers of atoms and bonds of each kind."""

    def counts(data):
        found = [
            [*numpy.bincount(atoms + 1, minlength=4), *bonds.sum((1, 2))]
            for atoms, bonds, _ in data
        ]
        return numpy.array(found), numpy.array([energy for *_, energy in data])

    known, energies = counts(train)
    fit, *_ = numpy.linalg.lstsq(known, energies, rcond=None)
    known, energies = counts(test)
    return abs(known @ fit - energies).mean()


class GraphNetwork(renga.Chain):
    """Atoms get messages of their neighbours, as in gated graph networks (1511.05493).

    Shapes:
        atoms: (N, A); bonds: (N, orders, A, A) -> energies (N, 1)
    """

    def __init__(self, width, steps):
        super().__init__()
        self.steps = steps
        with self.init_scope():
            self.embed = L.EmbedID(3, width, ignore_label=NO_ATOM)
            self.message = L.Linear(width, ORDERS * width)
            self.update = L.StatelessGRU(width, width)
            self.hidden = L.Linear(2 * width, width)
            self.energy = L.Linear(width, 1)

    def forward(self, atoms, bonds):
        n, count = atoms.shape
        h = first = self.embed(atoms)
        for _ in range(self.steps):
            sent = self.message(h, n_batch_axes=2).reshape(n, count, ORDERS, -1)
            got = F.sum(F.matmul(bonds, sent.transpose(0, 2, 1, 3)), axis=1)
            flat = (n * count, -1)
            h = self.update(h.reshape(flat), got.reshape(flat)).reshape(got.shape)
        both = F.concat([h, first], axis=2)
        each = self.energy(F.relu(self.hidden(both, n_batch_axes=2)), n_batch_axes=2)
        return F.sum(each * (atoms[:, :, None] != NO_ATOM), axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=2000, help="molecules")
    parser.add_argument("--epoch", type=int, default=20)
    parser.add_argument("--batchsize", type=int, default=32)
    parser.add_argument("--unit", type=int, default=32)
    parser.add_argument("--out", default="result")
    args = parser.parse_args()

    numpy.random.seed(0)
    train, test = make_data(args.size, 1), make_data(400, 2)
    network = GraphNetwork(args.unit, steps=2)
    model = L.Classifier(network, F.mean_absolute_error)
    model.compute_accuracy = False
    optimizer = renga.optimizers.Adam(0.003).setup(model)
    batches = renga.iterators.SerialIterator(train, args.batchsize)
    updater = training.StandardUpdater(batches, optimizer)
    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    batches = renga.iterators.SerialIterator(test, 100, repeat=False, shuffle=False)
    trainer.extend(extensions.Evaluator(batches, model))
    trainer.extend(extensions.ExponentialShift("alpha", 0.85), trigger=(1, "epoch"))
    trainer.extend(extensions.LogReport())
    columns = ["epoch", "main/loss", "validation/main/loss", "elapsed_time"]
    trainer.extend(extensions.PrintReport(columns))
    trainer.run()
    print(
        f"mean error by numbers of atoms and bonds: {error_by_counts(train, test):.3f}"
    )


if __name__ == "__main__":
    main()
