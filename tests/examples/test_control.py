"""Control by a deep Q-network."""

import numpy


def test_a_pole_is_balanced(run_offline):
    done = run_offline("13_control/train_cartpole.py", "--episode", 60)
    steps = numpy.array([entry["steps"] for entry in done.log])
    # A random policy holds it for about 22 steps; 200 are all that there are.
    assert steps[:10].mean() < 50
    assert steps[-20:].mean() > 120
    assert float(done.lines[-1].split()[-2]) > 150
