"""Tune a network for handwritten digits with Optuna; all ranks train each trial."""

import argparse
import os

import matplotlib
import numpy
import optuna

import renga
import renga.functions as F
import renga.links as L
from renga.distributed.optuna import create_study

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def train(trial, comm, data, test, epochs, batchsize):
    """The accuracy on the test data after some epochs; trials that lag are pruned."""
    units = trial.suggest_int("units", 8, 64, log=True)
    lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
    numpy.random.seed(comm.rank)  # the data's order; parameters are rank 0's anyway
    model = L.Classifier(
        renga.Sequential(L.Linear(None, units), F.relu, L.Linear(units, 10))
    )
    optimizer = renga.optimizers.Adam(lr).setup(model)
    optimizer = renga.distributed.create_multi_node_optimizer(optimizer, comm)
    iterator = renga.iterators.SerialIterator(data, batchsize // comm.size)
    x, t = renga.dataset.concat_examples(test[:])
    accuracy = 0.0
    while iterator.epoch < epochs:
        optimizer.update(model, *renga.dataset.concat_examples(iterator.next()))
        if not iterator.is_new_epoch:
            continue
        with renga.using_config("train", False), renga.no_backprop_mode():
            accuracy = float(F.accuracy(model.predictor(x), t).array)
        trial.report(accuracy, iterator.epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return accuracy


def plot(trials, path):
    """Each trial's accuracy after each epoch, and the best so far."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
    best, values = [], []
    for trial in trials:
        steps = trial.intermediate_values
        pruned = trial.state == optuna.trial.TrialState.PRUNED
        color = "tab:orange" if pruned else "tab:blue"
        left.plot(list(steps), list(steps.values()), ".-", color=color, alpha=0.6)
        values += [numpy.nan if pruned else trial.value]
        best.append(numpy.nanmax(values))
    left.set(xlabel="epoch", ylabel="accuracy", title="trials (orange: pruned)")
    right.plot(values, "o", label="trial")
    right.plot(best, label="best so far")
    right.set(xlabel="trial", ylabel="accuracy", title="study")
    right.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--epoch", type=int, default=8)
    parser.add_argument("--batchsize", type=int, default=64, help="of all processes")
    parser.add_argument(
        "--storage", help="where to keep the study, such as sqlite:///f"
    )
    parser.add_argument("--out", default="result", help="folder for the plot")
    args = parser.parse_args()

    comm = renga.distributed.create_communicator()
    data, test = renga.datasets.get_digits(ndim=1)
    data = renga.distributed.scatter_dataset(data, comm, shuffle=True, seed=0)

    study = create_study(
        comm,
        direction="maximize",
        storage=args.storage,
        sampler=optuna.samplers.TPESampler(seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
    )
    study.optimize(
        lambda trial: train(trial, comm, data, test, args.epoch, args.batchsize),
        n_trials=args.trials,
    )
    trials, params, value = study.trials, study.best_params, study.best_value
    if comm.rank == 0:
        os.makedirs(args.out, exist_ok=True)
        plot(trials, os.path.join(args.out, "study.png"))
        pruned = sum(t.state == optuna.trial.TrialState.PRUNED for t in trials)
        print(f"{len(trials)} trials, {pruned} of them pruned")
        print(f"best accuracy {value:.4f} with {params}")


if __name__ == "__main__":
    main()
