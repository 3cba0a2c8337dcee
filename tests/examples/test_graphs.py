"""Graph networks on generated molecules."""


def test_energies_of_molecules_are_told_by_their_bonds(run_offline):
    options = ["--size", 1000, "--epoch", 15]
    done = run_offline("12_graphs/train_molecules.py", *options)
    by_counts = float(done.lines[-1].split()[-1])
    assert 1 < by_counts < 2
    assert done.log[-1]["validation/main/loss"] < 0.5 * by_counts
