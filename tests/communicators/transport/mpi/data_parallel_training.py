"""Data-parallel training of a few full-batch steps; rank 0 prints the parameters.

With "fail" the last rank raises in the middle, with "leave" it exits; with "shard" each
rank keeps a shard of the parameters.
"""

import sys

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga.distributed import create_communicator, create_multi_node_optimizer

comm = create_communicator(sys.argv[1])
random = np.random.RandomState(0)
x = random.normal(size=(24, 8)).astype("float32")
t = random.normal(size=(24, 3)).astype("float32")
rows = slice(comm.rank * 24 // comm.size, (comm.rank + 1) * 24 // comm.size)
weights = random.normal(size=(3, 8)).astype("float32")
model = L.Linear(8, 3, initialW=weights)
optimizer = renga.optimizers.MomentumSGD(0.05).setup(model)
shard = "parameters" if sys.argv[2:] == ["shard"] else None
optimizer = create_multi_node_optimizer(optimizer, comm, shard=shard)
for step in range(10):
    if step == 5 and comm.rank == comm.size - 1:
        if sys.argv[2:] == ["fail"]:
            raise ValueError("no luck")
        if sys.argv[2:] == ["leave"]:
            sys.exit(0)
    optimizer.update(lambda x, t: F.mean_squared_error(model(x), t), x[rows], t[rows])
if comm.rank == 0:
    values = np.concatenate([model.W.array.ravel(), model.b.array])
    print("placement", comm.size, comm.intra_size, comm.inter_size)
    print("parameters", *(float(v).hex() for v in values), flush=True)
