"""Odd values for the arguments of training tools: accepted, or refused by name."""

import numpy
import pytest

import renga
import renga.links as L
from renga import training, transforms
from renga.training import extensions

ODD = [
    None,
    "3",
    -1,
    0,
    1.5,
    numpy.nan,
    numpy.inf,
    True,
    [1, 2, 3],
    (1,),
    (2, 1),
    numpy.array(3),
    numpy.float64(0.25),
]
ARGUMENTS = {
    "RandomCrop": transforms.RandomCrop,
    "RandomCrop: pad": lambda v: transforms.RandomCrop(4, v),
    "CenterCrop": transforms.CenterCrop,
    "RandomHorizontalFlip": transforms.RandomHorizontalFlip,
    "RandomErasing": transforms.RandomErasing,
    "RandomResizedCrop: scale": lambda v: transforms.RandomResizedCrop(2, scale=v),
    "RandomErasing: scale": lambda v: transforms.RandomErasing(scale=v),
    "RandomErasing: ratio": lambda v: transforms.RandomErasing(ratio=v),
    "RandomErasing: value": lambda v: transforms.RandomErasing(value=v),
    "Normalize: mean": lambda v: transforms.Normalize(v, 1),
    "Normalize": lambda v: transforms.Normalize(0, v),
    "ColorJitter: brightness": transforms.ColorJitter,
    "ColorJitter: saturation": lambda v: transforms.ColorJitter(saturation=v),
    "Mixup: n_classes": transforms.Mixup,
    "Mixup": lambda v: transforms.Mixup(3, v),
    "Compose": transforms.Compose,
    "transforms.converter": lambda v: transforms.converter(converter=v),
    "seed_everything": renga.seed_everything,
    "ExponentialMovingAverage": extensions.ExponentialMovingAverage,
    "ExponentialMovingAverage: ": lambda v: extensions.ExponentialMovingAverage(
        L.Linear(2, 2), v
    ),
    "TensorBoardReport": lambda v: extensions.TensorBoardReport(writer=v),
    "WandbReport": lambda v: extensions.WandbReport(run=v),
    "StandardUpdater: accumulate": lambda v: updater(accumulate=v),
    "Trainer: fast_dev_run": lambda v: training.Trainer(updater(), fast_dev_run=v),
    "lr_range_test": lambda v: training.lr_range_test(v, []),
    "lr_range_test: low": lambda v: training.lr_range_test(optimizer(), [], low=v),
    "lr_range_test: high": lambda v: training.lr_range_test(optimizer(), [], high=v),
    "lr_range_test: steps": lambda v: training.lr_range_test(optimizer(), [], steps=v),
    "model_summary": lambda v: renga.model_summary(v),
    "from_dlpack": renga.from_dlpack,
    "launch": renga.launch,
    "launch: ranks": lambda v: renga.launch(print, ranks=0 if v is True else v),
    "save_trace": lambda v: renga.profiler().save_trace("trace.json", v),
}


def optimizer():
    return renga.optimizers.SGD().setup(L.Classifier(L.Linear(2, 2)))


def updater(**options):
    data = [(numpy.zeros(2, "f"), numpy.int32(0))] * 4
    iterator = renga.iterators.SerialIterator(data, 2)
    return training.StandardUpdater(iterator, optimizer(), **options)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_odd_arguments(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = 0
    for value in ODD:
        try:
            ARGUMENTS[name](value)
        except (TypeError, ValueError) as error:
            refused += 1
            assert str(error).startswith(name.partition(":")[0] + ":"), value
            assert "expected" in str(error) and "got" in str(error), value
    assert refused >= 2


TRANSFORMS = {
    "RandomCrop": transforms.RandomCrop(4, pad=1),
    "CenterCrop": transforms.CenterCrop(4),
    "RandomHorizontalFlip": transforms.RandomHorizontalFlip(),
    "RandomErasing": transforms.RandomErasing(1.0),
    "Normalize": transforms.Normalize([0.5] * 3, 0.25),
    "ColorJitter": transforms.ColorJitter(0.5),
    "Mixup": lambda x: transforms.Mixup(3)(x, numpy.zeros(4, "i"))[0],
}
IMAGES = numpy.random.default_rng(0).uniform(0, 1, (4, 3, 8, 8)).astype("f")


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize(
    "x",
    [
        None,
        "images",
        [IMAGES[0], IMAGES[0, :, :3]],
        numpy.array([None] * 4),
        IMAGES[0],
        IMAGES.astype("c8"),
        numpy.full((4, 3, 8, 8), "a"),
    ],
    ids=["None", "text", "two shapes", "objects", "3 axes", "complex", "characters"],
)
def test_what_is_no_batch_of_images(name, x):
    with pytest.raises(renga.utils.type_check.InvalidType, match=f"{name}: expected"):
        TRANSFORMS[name](x)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_images_of_any_memory(name):
    read_only = IMAGES.copy()
    read_only.flags.writeable = False
    numpy.random.seed(0)
    expected = TRANSFORMS[name](IMAGES)
    reversed_twice = IMAGES[::-1, :, ::-1].copy()[::-1, :, ::-1]
    for x in (read_only, numpy.asfortranarray(IMAGES), reversed_twice):
        numpy.random.seed(0)
        numpy.testing.assert_array_equal(TRANSFORMS[name](x), expected)
    assert (read_only == IMAGES).all()


@pytest.mark.parametrize(
    ("t", "message"),
    [
        (None, "object"),
        ([0, 1], r"int64 \(2,\)"),
        ([0.0, 1.0, 2.0, 0.0], "float64"),
        ([[0], [1], [0], [1]], r"\(4, 1\)"),
        ([True] * 4, "bool"),
    ],
)
def test_labels_that_mixup_refuses(t, message):
    with pytest.raises(renga.utils.type_check.InvalidType, match=message):
        transforms.Mixup(3)(IMAGES, t)
    # Bytes would all become 0.
    with pytest.raises(renga.utils.type_check.InvalidType, match="uint8"):
        transforms.Mixup(3)(numpy.zeros((4, 2), "u1"), numpy.zeros(4, "i"))


def test_losses_that_a_range_test_refuses():
    batches = [(IMAGES[0, 0, :3, :2], numpy.zeros(3, "i"))]
    for wrong in (lambda model, x, t: None, lambda model, x, t: 3.0):
        with pytest.raises(TypeError, match="expected a Variable from the loss"):
            training.lr_range_test(optimizer(), batches, loss_func=wrong)
