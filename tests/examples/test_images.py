"""The course on images, on scikit-learn's digits, which it takes without a network."""

import matplotlib.image
import numpy

from renga.datasets import get_digits

PNG = b"\x89PNG"


def test_mnist_by_a_trainer_says_what_it_takes_and_goes_on(run_offline, tmp_path):
    done = run_offline("05_images/train_mnist.py", "--epoch", 3)
    said = "mnist is not at hand: taking the digits of scikit-learn instead"
    assert said in done.lines
    assert "digits: 1440 images to train, 357 to test with" in done.lines
    assert done.log[-1]["validation/main/accuracy"] > 0.9
    for plot in ("loss.png", "accuracy.png"):
        assert (tmp_path / plot).read_bytes()[:4] == PNG
    assert (tmp_path / "cg.dot").read_text().startswith("digraph")
    options = ["--epoch", 4, "--resume", tmp_path / "snapshot_iter_45"]
    resumed = run_offline("05_images/train_mnist.py", *options)
    assert [entry["epoch"] for entry in resumed.log] == [1, 2, 3, 4]


def test_mnist_by_a_loop_of_ones_own(run_offline, tmp_path):
    lines = run_offline("05_images/custom_loop.py", "--epoch", 4).lines
    assert float(lines[-2].partition("accuracy ")[2]) > 0.9
    assert lines[-1].startswith(f"{tmp_path}/mlp.npz takes the first test image")


def test_cifar(run_offline):
    options = ["--epoch", 3, "--width", 8, "--size", 480, "--batchsize", 16]
    done = run_offline("05_images/train_cifar.py", *options)
    assert "digits: 480 images to train, 357 to test with" in done.lines
    # Chance alone gives 0.1.
    assert done.log[-1]["validation/main/accuracy"] > 0.6


def test_a_vae_beats_independent_pixels(run_offline, tmp_path):
    done = run_offline("05_images/train_vae.py", "--epoch", 16)
    alone = float(done.lines[-1].split()[-4])
    # Every pixel costs this, if it has the training images' average chance of white.
    train, test = (numpy.float64(images) for images in get_digits(withlabel=False))
    p = train.mean(0).clip(1e-3, 1 - 1e-3)
    costs = -numpy.log(p) * test - numpy.log(1 - p) * (1 - test)
    assert abs(alone - costs.sum(1).mean()) < 1e-2
    assert done.log[-1]["validation/main/loss"] < alone - 1
    for picture in ("reconstructed.png", "made.png"):
        assert (tmp_path / picture).read_bytes()[:4] == PNG


def test_generated_images_are_digits(run_offline, tmp_path):
    options = ["--epoch", 12, "--width", 8, "--alpha", 2e-3]
    run_offline("05_images/train_dcgan.py", *options)
    picture = matplotlib.image.imread(tmp_path / "made.png")[:, :, 0]
    made = picture.reshape(10, 8, 10, 8).transpose(2, 0, 1, 3).mean(1).reshape(10, 64)
    train, _ = get_digits()
    images, labels = (numpy.array(each) for each in zip(*train))
    means = numpy.array([images[labels == digit].mean(0) for digit in range(10)])
    likeness = numpy.corrcoef(made, means)[:10, 10:]
    # Most columns are most like the digit that they were to be; chance gives one.
    assert (likeness.argmax(1) == numpy.arange(10)).sum() >= 6
