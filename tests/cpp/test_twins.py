"""What C++ programs compute has the bits of what Python computes from the same seed."""

from __future__ import annotations

import os
import pathlib
import re
import runpy
import subprocess
import zipfile
from typing import Any

import numpy
import pytest
import safetensors.numpy

import renga
import renga.functions as F
import renga.links as L
from renga import initializers, optimizer_hooks, optimizers, serializers
from renga.launch import mpiexec_command, mpiexec_environment
from renga.training import extensions
from tests.cpp import steps

_EXAMPLES = pathlib.Path(__file__).parents[2] / "examples/cpp"
_PROGRAMS = os.environ.get("RENGA_CPP_PROGRAMS")
pytestmark = pytest.mark.skipif(
    _PROGRAMS is None, reason="run by ctest, which builds the programs"
)

# Links, made after a seed, and the shapes of their inputs.
_LINKS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "linear": (lambda: L.Linear(5, 3), (4, 5)),
    "convolution": (
        lambda: L.Convolution2D(4, 6, (3, 2), stride=2, pad=1, groups=2),
        (2, 4, 7, 8),
    ),
    "convolution_1d": (lambda: L.Convolution1D(4, 6, 3), (2, 4, 9)),
    "deconvolution": (
        lambda: L.Deconvolution2D(4, 6, 4, stride=2, pad=1, nobias=True),
        (2, 4, 5, 5),
    ),
    "batch_normalization": (lambda: L.BatchNormalization(4), (8, 4, 3, 3)),
    "layer_normalization": (lambda: L.LayerNormalization(6), (4, 6)),
    "rms_normalization": (lambda: L.RMSNormalization(6), (4, 6)),
    "group_normalization": (lambda: L.GroupNormalization(2, 4), (4, 4, 3, 3)),
    "attention": (lambda: L.MultiHeadAttention(8, 2, dropout=0.3), (2, 5, 8)),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The arrays of twins.cpp, which has copied two files of Python's."""
    folder = tmp_path_factory.mktemp("twins")
    arrays = _stored()
    numpy.savez_compressed(folder / "python.npz", **arrays)
    del arrays["fortran"]
    safetensors.numpy.save_file(arrays, folder / "python.safetensors")
    optimizer = _optimizer_after_updates()
    serializers.save_npz(folder / "optimizer_python.npz", optimizer)
    serializers.save_safetensors(folder / "optimizer_python.safetensors", optimizer)
    _run("twins", folder, ".")
    return folder, dict(numpy.load(folder / "twins.npz"))


def _run(
    program: str, folder: pathlib.Path, *arguments: str, processes: int = 1
) -> str:
    """What a program prints that runs in a folder."""
    assert _PROGRAMS is not None
    command = [str(pathlib.Path(_PROGRAMS) / program), *arguments]
    if processes > 1:
        pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
        command = [*mpiexec_command(processes), *command]
    done = subprocess.run(
        command,
        cwd=folder,
        env=mpiexec_environment(processes),
        check=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def _stored() -> dict[str, numpy.ndarray]:
    random = numpy.random.RandomState(0)
    kinds = ("?", "u1", "i2", "u4", "i8", "f2", "f4", "f8")
    arrays = {kind: (random.rand(3, 5) * 9).astype(kind) for kind in kinds}
    arrays["scalar"] = numpy.array(1.5)
    arrays["empty"] = numpy.zeros((0, 4), "f4")
    arrays["noise"] = random.randint(0, 256, 70_000).astype("u1")
    arrays["zeros"] = numpy.zeros(100_000, "f4")
    arrays["text/path"] = numpy.arange(1000) % 7
    arrays["fortran"] = numpy.asfortranarray(random.rand(3, 4, 5))
    return arrays


def _input(shape: tuple[int, ...]) -> Any:
    numpy.random.seed(3)
    x = numpy.random.normal(size=shape).astype(numpy.float32)
    numpy.random.seed(4)
    return renga.Variable(x)


def _assert_same(found: dict[str, numpy.ndarray], prefix: str, expected: Any) -> None:
    names = {name for name in found if name.startswith(prefix)}
    assert names == {prefix + name for name in expected}
    for name, array in expected.items():
        numpy.testing.assert_array_equal(found[prefix + name], array, name)
        assert found[prefix + name].dtype == numpy.asarray(array).dtype


def _step(link: Any, x: Any, y: Any) -> dict[str, numpy.ndarray]:
    expected = {"y": y.array.copy()}
    link.cleargrads()
    F.sum(y * y).backward()
    if x is not None:
        expected["gx"] = x.grad
    for name, param in link.namedparams():
        expected[name[1:] + "/grad"] = param.grad
    return {**expected, **serializers.npz.serialize(link)}


@pytest.mark.parametrize("name", _LINKS)
def test_layers(name: str, results: Any) -> None:
    make, shape = _LINKS[name]
    x = _input(shape)
    link = make()
    _assert_same(results[1], f"{name}/", _step(link, x, link(x)))


def test_embedding(results: Any) -> None:
    numpy.random.seed(4)
    link = L.EmbedID(7, 3, ignore_label=-1)
    y = link(numpy.arange(-1, 5, dtype=numpy.int32))
    _assert_same(results[1], "embedding/", _step(link, None, y))


def test_lstm(results: Any) -> None:
    x = _input((4, 5))
    link = L.StatelessLSTM(5, 3)
    c, h = link(None, None, x)
    _assert_same(results[1], "lstm/", _step(link, x, link(c, h, x)[1]))


def test_gru_cell(results: Any) -> None:
    x = _input((4, 5))
    link = L.StatelessGRU(5, 3)
    h = link(numpy.zeros((4, 3), numpy.float32), x)
    _assert_same(results[1], "gru_cell/", _step(link, x, link(h, x)))


def test_cross_attention(results: Any) -> None:
    x = _input((2, 5, 8))
    link = L.MultiHeadAttention(8, 2, dropout=0.3)
    y = link(x, F.tanh(x[:, :3]))
    _assert_same(results[1], "cross_attention/", _step(link, x, y))


def test_lstm_layers(results: Any) -> None:
    x = _input((10, 4))
    link = L.NStepBiLSTM(2, 4, 3, 0.3)
    xs = F.split_axis(x, [3, 8], 0)
    h, c, _ = link(None, None, xs)
    h, c, ys = link(h, c, F.split_axis(x, [3, 8], 0))
    expected = _step(link, x, F.concat(ys, 0))
    expected.update(h=h.array, c=c.array)
    _assert_same(results[1], "lstm_layers/", expected)


def test_gru_layers(results: Any) -> None:
    x = _input((10, 4))
    link = L.NStepGRU(2, 4, 3, 0.0, initial_bias=initializers.Normal())
    h, ys = link(None, F.split_axis(x, [3, 8], 0))
    expected = {**_step(link, x, F.concat(ys, 0)), "h": h.array}
    _assert_same(results[1], "gru_layers/", expected)


@pytest.mark.parametrize("name", ["Tanh", "ReLU"])
def test_plain_recurrent_layers(name: str, results: Any) -> None:
    x = _input((10, 4))
    link = getattr(L, f"NStepBiRNN{name}")(
        2, 4, 3, 0.0, initial_bias=initializers.Normal()
    )
    h, _ = link(None, F.split_axis(x, [3, 8], 0))
    h, ys = link(h, F.split_axis(x, [3, 8], 0))
    expected = {**_step(link, x, F.concat(ys, 0)), "h": h.array}
    _assert_same(results[1], f"{name.lower()}_layers/", expected)


def test_sequential_is_named_as_a_list(results: Any) -> None:
    x = _input((4, 5))
    link = renga.ChainList(L.Linear(5, 8), L.Linear(8, 2))
    y = link[1](F.dropout(F.relu(link[0](x))))
    expected = _step(link, x, y)
    expected["evaluation"] = link[1](F.relu(link[0](x))).array
    _assert_same(results[1], "sequential/", expected)


def test_initializers(results: Any) -> None:
    numpy.random.seed(5)
    expected = {}
    for name in (
        *("Normal", "Uniform", "LeCunNormal", "LeCunUniform"),
        *("GlorotNormal", "GlorotUniform", "HeNormal", "HeUniform", "Orthogonal"),
    ):
        options: dict[str, Any] = {
            "LeCunUniform": {"scale": 2},
            "HeNormal": {"fan_option": "fan_out"},
        }
        expected[name] = numpy.empty((5, 3, 3), numpy.float32)
        getattr(initializers, name)(**options.get(name, {}))(expected[name])
    expected["Identity"] = 2 * numpy.eye(3, dtype=numpy.float32)
    expected["tall"] = numpy.empty((7, 2, 2), numpy.float32)
    initializers.Orthogonal(1.0)(expected["tall"])
    found = {k: v for k, v in results[1].items() if k.startswith("initializer/")}
    for name in ("Orthogonal", "tall"):  # to the rounding of another QR
        numpy.testing.assert_allclose(
            found.pop(f"initializer/{name}"), expected.pop(name), rtol=0, atol=2e-7
        )
    _assert_same(found, "initializer/", expected)


@pytest.mark.parametrize(
    "name",
    [
        *("SGD", "MomentumSGD", "NesterovAG", "CorrectedMomentumSGD", "RMSprop"),
        *("AdaGrad", "AdaDelta", "RMSpropGraves", "SMORMS3", "MSVAG", "Adam"),
        *("AMSGrad", "AdaBound", "AMSBound", "LAMB", "RMSpropMomentumSGD"),
        *("WeightDecay", "GradientClipping", "GradientHardClipping", "Lasso"),
        *("GradientNoise", "GradientLARS"),
    ],
)
def test_optimizers(name: str, results: Any) -> None:
    hooks: dict[str, Any] = {
        "WeightDecay": ("SGD", (0.01,)),
        "GradientClipping": ("Adam", (0.1,)),
        "GradientHardClipping": ("SGD", (-0.01, 0.02)),
        "Lasso": ("SGD", (0.01,)),
        "GradientNoise": ("SGD", (0.3,)),
        "GradientLARS": ("SGD", (0.01, 0.1)),
    }
    x = _input((4, 5))
    model = L.Linear(5, 3)
    rule, arguments = hooks.get(name, (name, ()))
    optimizer = getattr(optimizers, rule)().setup(model)
    if name == "RMSpropMomentumSGD":
        optimizer.sgd_share = 0.25
    if name in hooks:
        optimizer.add_hook(getattr(optimizer_hooks, name)(*arguments))
    for _ in range(5):
        _train(model, optimizer, x)
    expected = serializers.npz.serialize(model) | serializers.npz.serialize(optimizer)
    _assert_same(results[1], f"optimizer/{name}/", expected)


def _train(model: Any, optimizer: Any, x: Any) -> None:
    model.cleargrads()
    y = F.tanh(model(x))
    F.sum(y * y).backward()
    optimizer.update()


def _optimizer_after_updates() -> Any:
    x = _input((4, 5))
    model = L.Linear(5, 3)
    optimizer = optimizers.Adam().setup(model)
    for step in range(3):
        model.b.update_rule.enabled = step > 0  # b has an update less than W
        _train(model, optimizer, x)
    optimizer.new_epoch()
    return optimizer


def test_optimizers_in_files(results: Any) -> None:
    folder, found = results
    x = _input((4, 5))
    model = L.Linear(5, 3)
    resumed = optimizers.Adam().setup(model)
    for kind in ("npz", "safetensors"):
        getattr(serializers, f"load_{kind}")(
            folder / f"optimizer_python.{kind}", resumed
        )
        _train(model, resumed, x)
        stored = optimizers.Adam().setup(L.Linear(5, 3))
        getattr(serializers, f"load_{kind}")(folder / f"optimizer.{kind}", stored)
        expected = serializers.npz.serialize(resumed)
        _assert_same(serializers.npz.serialize(stored), "", expected)
        assert (stored.t, stored.epoch, stored.target.b.update_rule.t) == (4, 1, 3)
    _assert_same(found, "resumed/", serializers.npz.serialize(model))


_SHIFTS: dict[str, Any] = {
    "ExponentialShift": ((0.9, 0.3, 0.2), {}),
    "StepShift": ((0.5, 4, 0.3), {}),
    "MultistepShift": ((0.5, [3, 7], 0.3), {}),
    "PolynomialShift": ((1.5, 9, 0.3), {}),
    "InverseShift": ((0.4, 0.75, 0.3), {}),
    "LinearShift": (((0.3, 0.1), (2, 8)), {}),
    "CosineShift": ((9, 0.01, 0.3), {}),
    "OneCycleShift": ((9,), {"init": 0.3}),
    "WarmupShift": ((0.1, 5, 0.3), {}),
}


@pytest.mark.parametrize("name", _SHIFTS)
def test_schedules(name: str, results: Any) -> None:
    arguments, named = _SHIFTS[name]
    optimizer = optimizers.SGD().setup(L.Linear(2, 2))
    shift = getattr(extensions, name)("lr", *arguments, optimizer=optimizer, **named)
    values = []
    shift.initialize(None)
    for _ in range(12):
        values.append(optimizer.lr)
        shift(None)
    numpy.testing.assert_array_equal(results[1][f"schedule/{name}"], values)


def test_permutation(results: Any) -> None:
    numpy.random.seed(6)
    expected = numpy.random.permutation(1000)
    numpy.testing.assert_array_equal(results[1]["permutation"], expected)


def test_files(results: Any) -> None:
    stored = _stored()
    _assert_same(dict(numpy.load(results[0] / "copied.npz")), "", stored)
    with zipfile.ZipFile(results[0] / "copied.npz") as copied:
        for name, array in stored.items():
            header = len(copied.read(f"{name}.npy")) - array.nbytes
            assert header % 64 == 0, "the format of NumPy aligns data"
    del stored["fortran"]
    _assert_same(
        safetensors.numpy.load_file(results[0] / "copied.safetensors"), "", stored
    )


@pytest.mark.parametrize("network", sorted({*steps.NETWORKS} - {"large_mlp"}))
def test_networks_have_the_same_bits_after_20_updates(
    network: str, tmp_path: pathlib.Path
) -> None:
    _run("steps", tmp_path, network, "20", "net.npz")
    net, _ = steps.train(network, 20)
    _assert_same(
        dict(numpy.load(tmp_path / "net.npz")), "", serializers.npz.serialize(net)
    )


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with the data of the example, and the parameters that Python trains."""
    folder = tmp_path_factory.mktemp("digits")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        runpy.run_path(str(_EXAMPLES / "digits.py"), run_name="__main__")
    return folder, safetensors.numpy.load_file(folder / "digits_python.safetensors")


def test_digits(digits: Any) -> None:
    folder, expected = digits
    _run("digits", folder)
    found = safetensors.numpy.load_file(folder / "digits.safetensors")
    _assert_same(found, "", expected)


def test_digits_on_two_processes(digits: Any) -> None:
    folder, expected = digits
    _run("digits", folder, processes=2)
    found = safetensors.numpy.load_file(folder / "digits.safetensors")
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        numpy.testing.assert_allclose(found[name], array, rtol=0, atol=1e-6)


def test_a_network_moves_to_a_cuda_device(tmp_path: pathlib.Path) -> None:
    assert _PROGRAMS is not None
    if not (pathlib.Path(_PROGRAMS) / "on_cuda").exists():
        pytest.skip("a build without the stand-in")
    printed = _run("on_cuda", tmp_path)
    ((difference,),) = _numbers(printed, r"difference (\S+) on cuda")
    assert difference < 1e-5
    ((apart,),) = _numbers(printed, r"apart (\S+) on ranks")
    assert apart < 1e-6
    assert re.search(r"cuda: expected a device below \d, got 99$", printed.strip())


def test_dcgan(digits: Any) -> None:
    losses = _numbers(_run("dcgan", digits[0]), r"generator (.*), discriminator (.*)")
    assert len(losses) == 1440 // 64
    # At first, a discriminator that does not know better has losses of log 2.
    assert abs(losses[0][0] - 0.693) < 0.4
    assert numpy.load(digits[0] / "generator.npz")["up2/W"].shape == (32, 1, 4, 4)


def test_spatial_network_is_that_of_one_process(tmp_path: pathlib.Path) -> None:
    alone = _numbers(_run("spatial", tmp_path), r"loss (.*)")
    assert alone[-1][0] < alone[0][0] / 2
    spread = _numbers(_run("spatial", tmp_path, processes=2), r"loss (.*)")
    numpy.testing.assert_allclose(spread, alone, rtol=1e-5)


def test_heat_finds_the_stencil(tmp_path: pathlib.Path) -> None:
    printed = _run("heat", tmp_path, processes=2)
    kernel = _numbers(printed, r"(\S+)  (\S+)  (\S+)$")
    k = 0.15
    expected = [[0, k, 0], [k, 1 - 4 * k, k], [0, k, 0]]
    numpy.testing.assert_allclose(kernel, expected, atol=1e-4)


def _numbers(printed: str, pattern: str) -> list[list[float]]:
    """The numbers in each line that matches a pattern."""
    found = (re.search(pattern, line) for line in printed.splitlines())
    return [[float(x) for x in match.groups()] for match in found if match]
