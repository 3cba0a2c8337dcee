"""Q-learning on a corridor, with replay and a target network."""
import collections
import copy
import random

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

LENGTH = 5


class QFunction(chainer.Chain):

    def __init__(self, obs_size, n_actions, n_units=32):
        super(QFunction, self).__init__()
        with self.init_scope():
            self.l0 = L.Linear(obs_size, n_units)
            self.l1 = L.Linear(n_units, n_actions)

    def forward(self, x):
        return self.l1(F.relu(self.l0(x)))


def observe(position):
    return np.eye(LENGTH, dtype=np.float32)[position]


def step(position, action):
    position = max(position + (1 if action else -1), 0)
    done = position == LENGTH - 1
    return position, float(done), done


def get_greedy_action(Q, obs):
    with chainer.no_backprop_mode():
        q = Q(Q.xp.asarray(obs[None])).array[0]
    return int(q.argmax())


def update(Q, target_Q, opt, samples, gamma=0.9):
    xp = Q.xp
    obs = xp.asarray([s[0] for s in samples], np.float32)
    action = xp.asarray([s[1] for s in samples], np.int32)
    reward = xp.asarray([s[2] for s in samples], np.float32)
    done = xp.asarray([s[3] for s in samples], np.float32)
    obs_next = xp.asarray([s[4] for s in samples], np.float32)
    y = F.select_item(Q(obs), action)
    with chainer.no_backprop_mode():
        next_q = F.max(target_Q(obs_next), axis=1)
    target = reward + gamma * (1 - done) * next_q.array
    loss = F.mean(F.huber_loss(y, target, 1.0, reduce='no'))
    Q.cleargrads()
    loss.backward()
    opt.update()


def main():
    random.seed(0)
    np.random.seed(0)
    Q = QFunction(LENGTH, 2)
    target_Q = copy.deepcopy(Q)
    opt = chainer.optimizers.Adam(0.01)
    opt.setup(Q)
    replay = collections.deque(maxlen=1000)
    iteration = 0
    for episode in range(60):
        position = 0
        for _ in range(30):
            obs = observe(position)
            explore = np.random.rand() < 0.5
            action = (np.random.randint(2) if explore
                      else get_greedy_action(Q, obs))
            position, reward, done = step(position, action)
            replay.append((obs, action, reward, done, observe(position)))
            if len(replay) > 50:
                update(Q, target_Q, opt, random.sample(list(replay), 32))
            if iteration % 50 == 0:
                target_Q = copy.deepcopy(Q)
            iteration += 1
            if done:
                break
    actions = [get_greedy_action(Q, observe(p)) for p in range(LENGTH - 1)]
    print('actions %s' % actions)


if __name__ == '__main__':
    main()
