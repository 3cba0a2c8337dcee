"""Images with labels: those of a download, or digits that come with scikit-learn."""

import renga

DOWNLOADS = {
    "mnist": renga.datasets.get_mnist,
    "cifar10": renga.datasets.get_cifar10,
}


def load(name, ndim=1, size=None):
    """Images to train with, at most ``size``, images to test with, and their name.

    Without a network and without files fetched earlier, MNIST becomes scikit-learn's
    1 797 digits of 8 × 8 pixels, and CIFAR-10 the same enlarged to 32 × 32 in three
    equal colours, and the name is "digits".

    Shapes:
        images: with c colours of s × s pixels, (c·s·s,), or (c, s, s) for ndim 3
    """
    try:
        train, test = DOWNLOADS[name](ndim=ndim)
    except OSError as error:
        print(error)
        print(f"{name} is not at hand: taking the digits of scikit-learn instead")
        colours = {"rgb_format": True, "upscale": 32} if name == "cifar10" else {}
        train, test = renga.datasets.get_digits(ndim=ndim, **colours)
        name = "digits"
    if size is not None:
        train = renga.datasets.SubDataset(train, 0, min(size, len(train)))
    print(f"{name}: {len(train)} images to train, {len(test)} to test with")
    return train, test, name
