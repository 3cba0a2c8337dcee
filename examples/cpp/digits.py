"""Writes digits.npz for digits.cpp, and trains the same network with the same bits."""

import numpy

import renga
import renga.functions as F
import renga.links as L


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(1, 16, 3, pad=1)
            self.out = L.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        return self.out(F.max_pooling_2d(F.relu(self.conv(x)), 2))


def main():
    samples, _ = renga.datasets.get_digits(ndim=3, upscale=8)
    x = numpy.stack([image for image, _ in samples])
    t = numpy.array([label for _, label in samples], numpy.int32)
    numpy.savez("digits.npz", x=x, t=t)

    numpy.random.seed(0)
    net = Net()
    optimizer = renga.optimizers.MomentumSGD(0.05).setup(net)
    optimizer.add_hook(renga.optimizer_hooks.WeightDecay(1e-4))
    for epoch in range(3):
        order = numpy.random.permutation(len(x))
        for i in range(0, len(x) // 64 * 64, 64):
            batch = order[i : i + 64]
            net.cleargrads()
            F.softmax_cross_entropy(net(x[batch]), t[batch]).backward()
            optimizer.update()
        with renga.using_config("train", False), renga.no_backprop_mode():
            accuracy = F.accuracy(net(x), t).item()
        print(f"epoch {epoch + 1}: accuracy {accuracy:.6g}")
    renga.serializers.save_safetensors("digits_python.safetensors", net)


if __name__ == "__main__":
    main()
