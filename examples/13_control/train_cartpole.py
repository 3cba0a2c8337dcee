"""Balance a pole on a cart by a deep Q-network (Mnih et al., Nature 2015).

    python train_cartpole.py

The state is the position and speed of the cart, and the angle and angular speed of the
pole; the cart is pushed to the left or to the right. An episode ends when the pole has
fallen, the cart has left its track, or after 200 steps. A random policy holds the pole
for about 22 steps; after 100 episodes, in some six seconds, the network for 200.
"""

import argparse
import collections
import copy
import json
import os

import numpy

import renga
import renga.functions as F
import renga.links as L

STEPS, ACTIONS = 200, 2
DISCOUNT = 0.99


class CartPole:
    """The equations of motion of Barto, Sutton and Anderson (1983)."""

    def __init__(self, random):
        self._random = random

    def reset(self):
        self._step = 0
        self.state = self._random.uniform(-0.05, 0.05, 4)
        return self.state.astype(numpy.float32)

    def step(self, action):
        """The next state, whether the pole has fallen, and whether time is up."""
        x, speed, angle, turn = self.state
        sine, cosine = numpy.sin(angle), numpy.cos(angle)
        force = (10.0 if action == 1 else -10.0) + 0.05 * turn**2 * sine
        push = force / 1.1
        twist = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        slide = push - 0.05 * twist * cosine / 1.1
        self.state = self.state + 0.02 * numpy.array([speed, slide, turn, twist])
        self._step += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return self.state.astype(numpy.float32), fallen, self._step >= STEPS


class Agent:
    """Learns, from remembered steps, what each action brings: -1 for a fall."""

    def __init__(self, random, unit):
        self._random = random
        self.network = renga.Sequential(
            L.Linear(4, unit), F.relu, L.Linear(unit, unit), F.relu, L.Linear(unit, 2)
        )
        self._target = copy.deepcopy(self.network)
        self._optimizer = renga.optimizers.Adam(0.001).setup(self.network)
        self._memory = collections.deque(maxlen=10000)

    def act(self, state, noise=0.0):
        if self._random.rand() < noise:
            return self._random.randint(ACTIONS)
        with renga.no_backprop_mode():
            return int(self.network(state[None]).array.argmax())

    def remember(self, *step):
        self._memory.append(step)

    def update(self, batchsize):
        """One step for a batch of what it remembers."""
        if len(self._memory) < batchsize:
            return
        chosen = self._random.randint(len(self._memory), size=batchsize)
        batch = [self._memory[i] for i in chosen]
        states, actions, following, fallen = map(numpy.array, zip(*batch))
        with renga.no_backprop_mode():
            # The network chooses, the target judges (van Hasselt et al., 2015).
            best = self.network(following).array.argmax(axis=1)
            later = F.select_item(self._target(following), best).array
        expected = (DISCOUNT * later * ~fallen - fallen).astype(numpy.float32)
        known = F.select_item(self.network(states), actions)
        loss = F.mean(F.huber_loss(known, expected, delta=1.0, reduce="no"))
        self.network.cleargrads()
        loss.backward()
        self._optimizer.update()
        for own, other in zip(self.network.params(), self._target.params()):
            other.array += 0.02 * (own.array - other.array)


def play(world, agent, noise=0.0, batchsize=None):
    """The steps of an episode, from which the agent learns if there is a batch size."""
    state, steps, ended = world.reset(), 0, False
    while not ended:
        action = agent.act(state, noise)
        following, fallen, late = world.step(action)
        if batchsize is not None:
            agent.remember(state, action, following, fallen)
            agent.update(batchsize)
        state, steps, ended = following, steps + 1, fallen or late
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--episode", type=int, default=100)
    parser.add_argument("--batchsize", type=int, default=64)
    parser.add_argument("--unit", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="result")
    args = parser.parse_args()

    random = numpy.random.RandomState(args.seed)
    numpy.random.seed(args.seed)
    world, agent = CartPole(random), Agent(random, args.unit)
    log = []
    for episode in range(1, args.episode + 1):
        noise = max(0.02, 1 - episode / 40)
        steps = play(world, agent, noise, args.batchsize)
        log.append({"episode": episode, "steps": steps})
        if episode % 10 == 0:
            mean = numpy.mean([entry["steps"] for entry in log[-10:]])
            print(f"episode {episode:4}: {mean:5.1f} steps")
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "log"), "w", encoding="utf-8") as file:
        json.dump(log, file)
    held = numpy.mean([play(world, agent) for _ in range(20)])
    print(f"without noise: {held:.1f} steps")


if __name__ == "__main__":
    main()
