"""The vocabulary of model parallelism: placements, and how variables change them."""

from renga.links.parallel.sharding.placement import Partial as Partial
from renga.links.parallel.sharding.placement import Placement as Placement
from renga.links.parallel.sharding.placement import Replicate as Replicate
from renga.links.parallel.sharding.placement import Shard as Shard
from renga.links.parallel.sharding.redistribute import redistribute as redistribute
from renga.links.parallel.sharding.redistribute import relayout as relayout
