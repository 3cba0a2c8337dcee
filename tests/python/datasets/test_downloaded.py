"""MNIST and CIFAR from files as their authors wrote them, but small."""

import gzip
import hashlib
import io
import pickle
import struct
import tarfile

import numpy
import pytest
import scipy.io

from renga import datasets
from renga.configuration import using_config
from renga.dataset import download
from renga.datasets import cifar, ptb, svhn
from renga.datasets.downloaded.idx import SOURCES, IdxSource
from renga.serializers import FileFormatError

SIZES = {"train": 7, "t10k": 3}
FAMILY = {
    "mnist": datasets.get_mnist,
    "fashion-mnist": datasets.get_fashion_mnist,
    "kuzushiji_mnist": datasets.get_kuzushiji_mnist,
}
RNG = numpy.random.RandomState(0)


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_dataset_root", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture(params=FAMILY)
def idx_files(request, tmp_path, monkeypatch, root):
    """The name, the function and the arrays of one data set of MNIST's family."""
    raw, checksums = {}, {}
    for part, n in SIZES.items():
        images = RNG.randint(0, 256, (n, 28, 28)).astype(numpy.uint8)
        images[0, 0, :2] = 0, 255
        labels = RNG.randint(0, 10, n).astype(numpy.uint8)
        raw[part] = images, labels
        for name, magic, array in (
            (f"{part}-images-idx3-ubyte.gz", 0x803, images),
            (f"{part}-labels-idx1-ubyte.gz", 0x801, labels),
        ):
            header = struct.pack(f">{1 + array.ndim}i", magic, *array.shape)
            data = gzip.compress(header + array.tobytes())
            (tmp_path / name).write_bytes(data)
            checksums[name] = "sha256:" + hashlib.sha256(data).hexdigest()
    assert set(checksums) == set(SOURCES[request.param].checksums)
    source = IdxSource((tmp_path.as_uri() + "/",), checksums)
    monkeypatch.setitem(SOURCES, request.param, source)
    return request.param, FAMILY[request.param], raw


@pytest.fixture(params=["cifar-10", "cifar-100"])
def cifar_archive(request, tmp_path, monkeypatch, root):
    """The name, the function and the arrays of CIFAR-10 or CIFAR-100."""
    name = request.param
    if name == "cifar-10":
        folder = "cifar-10-batches-bin"
        members = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    else:
        folder, members = "cifar-100-binary", ["train.bin", "test.bin"]
    parts = []
    with tarfile.open(tmp_path / f"{name}-binary.tar.gz", "w:gz") as archive:
        for member in members:
            images = RNG.randint(0, 256, (2, 3072)).astype(numpy.uint8)
            labels = RNG.randint(0, 10, (2, 1)).astype(numpy.uint8)
            coarse = labels[:, : name == "cifar-100"] + 50
            data = numpy.hstack([coarse, labels, images]).tobytes()
            info = tarfile.TarInfo(f"{folder}/{member}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
            parts.append((images, labels[:, 0]))
    digest = hashlib.sha256((tmp_path / f"{name}-binary.tar.gz").read_bytes())
    monkeypatch.setattr(cifar, "_MIRROR", tmp_path.as_uri() + "/")
    load = cifar._load
    monkeypatch.setattr(
        cifar, "_load", lambda n, checksum, *a: load(n, digest.hexdigest(), *a)
    )
    train = tuple(numpy.concatenate(arrays) for arrays in zip(*parts[:-1]))
    get = {"cifar-10": datasets.get_cifar10, "cifar-100": datasets.get_cifar100}[name]
    return name, get, train, parts[-1]


def columns(dataset):
    x, t = zip(*dataset)
    return numpy.array(x), numpy.array(t)


def test_idx_images_and_labels(idx_files):
    _, get, raw = idx_files
    for dataset, (images, labels) in zip(get(), (raw["train"], raw["t10k"])):
        x, t = columns(dataset)
        assert x.dtype == numpy.float32 and t.dtype == numpy.int32
        want = images.reshape(-1, 784) / 255
        numpy.testing.assert_allclose(x, want, rtol=1e-6)
        numpy.testing.assert_array_equal(t, labels)
        assert x.min() == 0 and x.max() == 1


@pytest.mark.parametrize(
    "options, shape",
    [
        ({"ndim": 1}, (784,)),
        ({"ndim": 2}, (28, 28)),
        ({"ndim": 3}, (1, 28, 28)),
        ({"ndim": 3, "rgb_format": True}, (3, 28, 28)),
        ({"ndim": 2, "rgb_format": True}, (28, 28)),
    ],
)
def test_idx_shapes(idx_files, options, shape):
    _, get, raw = idx_files
    train, test = get(withlabel=False, scale=255.0, dtype=numpy.float64, **options)
    assert train.shape == (7, *shape) and test.shape == (3, *shape)
    assert train.dtype == numpy.float64
    want = raw["train"][0].reshape((7, 1, 28, 28) if len(shape) == 3 else (7, *shape))
    numpy.testing.assert_allclose(train, numpy.broadcast_to(want, train.shape))


def test_idx_is_cached_where_chainer_caches_it(idx_files, root, tmp_path):
    name, get, raw = idx_files
    get()
    for file in tmp_path.glob("*.gz"):
        file.unlink()
    folder = root / "pfnet" / "chainer" / name
    for file in folder.glob("*.gz"):
        file.unlink()
    with numpy.load(folder / "test.npz") as archive:
        assert archive["x"].shape == (3, 784) and archive["x"].dtype == numpy.uint8
        numpy.testing.assert_array_equal(archive["y"], raw["t10k"][1])
    _, test = get(withlabel=False, ndim=2, scale=255)
    numpy.testing.assert_allclose(test, raw["t10k"][0])


def test_types_by_argument_and_by_configuration(idx_files):
    _, get, _ = idx_files
    x, t = columns(get(dtype=numpy.float16, label_dtype=numpy.int64)[0])
    assert x.dtype == numpy.float16 and t.dtype == numpy.int64
    with using_config("dtype", numpy.float16):
        assert get(withlabel=False)[0].dtype == numpy.float16


def test_a_broken_idx_file_is_refused(idx_files, root, tmp_path, monkeypatch):
    name, get, _ = idx_files
    file = "train-images-idx3-ubyte.gz"
    header = struct.pack(">4i", 0x803, 7, 28, 28)
    for content, message in [
        (header + bytes(100), r"\(7, 28, 28\) values, got 100"),
        (b"\0\0\x0d\x03" + bytes(100), "expected a header"),
        (b"", "expected a header"),
    ]:
        data = gzip.compress(content)
        (tmp_path / file).write_bytes(data)
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        monkeypatch.setitem(SOURCES[name].checksums, file, digest)
        with pytest.raises(ValueError, match=message):
            get()
        assert not (root / "pfnet" / "chainer" / name / "train.npz").exists()
        (root / "pfnet" / "chainer" / name / file).unlink()


def test_without_a_network_a_manually_placed_file_is_used(
    idx_files, root, tmp_path, monkeypatch
):
    name, get, raw = idx_files
    nowhere = SOURCES[name]._replace(mirrors=("http://127.0.0.1:9/",))
    monkeypatch.setitem(SOURCES, name, nowhere)
    folder = root / "pfnet" / "chainer" / name
    with pytest.raises(OSError, match="put the file train-images-idx3-ubyte.gz") as e:
        get()
    assert str(folder / "train-images-idx3-ubyte.gz") in str(e.value)
    for file in tmp_path.glob("*.gz"):
        file.rename(folder / file.name)
    assert [len(part) for part in get()] == [7, 3]


def test_cifar_images_and_labels(cifar_archive):
    _, get, *parts = cifar_archive
    for dataset, (images, labels) in zip(get(), parts):
        x, t = columns(dataset)
        assert x.shape[1:] == (3, 32, 32) and x.dtype == numpy.float32
        want = images.reshape(-1, 3, 32, 32) / 255
        numpy.testing.assert_allclose(x, want, rtol=1e-6)
        numpy.testing.assert_array_equal(t, labels)
        assert t.dtype == numpy.int32


@pytest.mark.parametrize("name", ["cifar-10", "cifar-100"])
@pytest.mark.parametrize("is_harmful", [False, True])
def test_the_archive_of_cifar_that_chainer_has_kept(root, name, is_harmful):
    is_10 = name == "cifar-10"
    members = ["train", "test"]
    if is_10:
        members = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    url = f"https://www.cs.toronto.edu/~kriz/{name}-python.tar.gz"
    path = root / "_dl_cache" / hashlib.md5(url.encode()).hexdigest()
    path.parent.mkdir(parents=True)
    parts = []
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            images = RNG.randint(0, 256, (2, 3072)).astype(numpy.uint8)
            labels = RNG.randint(0, 10, 2).tolist()
            content = {b"data": images, b"filenames": [b"a.png", b"b.png"]}
            content[b"labels" if is_10 else b"fine_labels"] = labels
            data = pickle.dumps(print if is_harmful else content, protocol=3)
            folder = "cifar-10-batches-py" if is_10 else "cifar-100-python"
            info = tarfile.TarInfo(f"{folder}/{member}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
            parts.append((images, labels))
    get = datasets.get_cifar10 if is_10 else datasets.get_cifar100
    if is_harmful:
        with pytest.raises(FileFormatError, match="a pickle of builtins.print"):
            get()
        return
    train, test = get(ndim=1, scale=255.0)
    images, labels = (numpy.concatenate(arrays) for arrays in zip(*parts))
    x, t = columns([*train, *test])
    numpy.testing.assert_array_equal(x, images)
    numpy.testing.assert_array_equal(t, labels)
    assert len(test) == 2


def test_cifar_options(cifar_archive):
    _, get, (images, _), _ = cifar_archive
    train, _ = get(withlabel=False, ndim=1, scale=255.0, dtype=numpy.float64)
    numpy.testing.assert_allclose(train, images)
    with pytest.raises(ValueError, match="expected ndim in 1, 3, got 2"):
        get(ndim=2)


def test_cifar_is_cached_where_chainer_caches_it(cifar_archive, root, tmp_path):
    name, get, (images, labels), (test_images, _) = cifar_archive
    get()
    (tmp_path / f"{name}-binary.tar.gz").unlink()
    folder = root / "pfnet" / "chainer" / "cifar"
    (folder / f"{name}-binary.tar.gz").unlink()
    with numpy.load(folder / f"{name}.npz") as archive:
        numpy.testing.assert_array_equal(archive["train_x"], images)
        numpy.testing.assert_array_equal(archive["train_y"], labels)
        numpy.testing.assert_array_equal(archive["test_x"], test_images)
    assert len(get()[0]) == len(images)


def test_a_pickle_in_the_cache_is_refused(cifar_archive, root):
    name, get, *_ = cifar_archive
    folder = root / "pfnet" / "chainer" / "cifar"
    folder.mkdir(parents=True)
    numpy.savez(folder / f"{name}.npz", train_x=numpy.array([None]))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        get()


@pytest.mark.parametrize("ndim", [0, 4])
def test_unknown_ndim(idx_files, ndim):
    with pytest.raises(ValueError, match=f"expected ndim in 1, 2, 3, got {ndim}"):
        idx_files[1](ndim=ndim)


def test_class_names():
    assert len(datasets.get_fashion_mnist_labels()) == 10
    assert datasets.get_fashion_mnist_labels()[9] == "Ankle boot"
    assert datasets.get_kuzushiji_mnist_labels()[2] == ("su", "す")


@pytest.fixture
def svhn_files(tmp_path, monkeypatch, root):
    raw, checksums = {}, {}
    for n, part in enumerate(("train", "test", "extra"), 2):
        images = RNG.randint(0, 256, (32, 32, 3, n)).astype(numpy.uint8)
        labels = numpy.arange(10, 10 - n, -1, dtype=numpy.uint8)[:, None]
        path = tmp_path / f"{part}_32x32.mat"
        scipy.io.savemat(path, {"X": images, "y": labels})
        raw[part] = images, labels
        checksums[part] = "md5:" + hashlib.md5(path.read_bytes()).hexdigest()
    assert set(checksums) == set(svhn._CHECKSUMS)
    monkeypatch.setattr(svhn, "_MIRROR", tmp_path.as_uri() + "/")
    monkeypatch.setattr(svhn, "_CHECKSUMS", checksums)
    return raw


def test_svhn(svhn_files):
    for _ in range(2):  # the second time from the cache
        parts = datasets.get_svhn(add_extra=True, scale=255, dtype="f8")
        for dataset, (images, labels) in zip(parts, svhn_files.values()):
            assert len(dataset) == images.shape[3]
            for i, (image, label) in enumerate(dataset):
                numpy.testing.assert_allclose(image, images[..., i].transpose(2, 0, 1))
                assert label == labels[i, 0] % 10 and label.dtype == numpy.int32
    train, test = datasets.get_svhn(withlabel=False)
    assert train.shape == (2, 3, 32, 32) and test.shape == (3, 3, 32, 32)
    assert train.dtype == numpy.float32 and train.max() <= 1


def test_ptb(tmp_path, monkeypatch, root):
    texts = {"train": " no it was\n was it \n", "valid": " it is\n", "test": " no\n"}
    checksums = {}
    for part, text in texts.items():
        (tmp_path / f"ptb.{part}.txt").write_text(text)
        checksums[part] = "md5:" + hashlib.md5(text.encode()).hexdigest()
    assert set(checksums) == set(ptb._CHECKSUMS)
    monkeypatch.setattr(ptb, "_MIRROR", tmp_path.as_uri() + "/")
    monkeypatch.setattr(ptb, "_CHECKSUMS", checksums)
    for _ in range(2):
        train, valid, test = datasets.get_ptb_words()
        words = datasets.get_ptb_words_vocabulary()
        assert words == {"no": 0, "it": 1, "was": 2, "<eos>": 3, "is": 4}
        assert train.tolist() == [0, 1, 2, 3, 2, 1, 3] and train.dtype == numpy.int32
        assert valid.tolist() == [1, 4, 3] and test.tolist() == [0, 3]


IDX = struct.pack(">4i", 0x803, 7, 28, 28)


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(data, message, id=str(i))  # the same names in all processes
        for i, (data, message) in enumerate(
            [
                (gzip.compress(IDX + bytes(7 * 28 * 28))[:-5], "EOFError"),
                (gzip.compress(IDX + bytes(7 * 28 * 28))[:-8] + bytes(8), "CRC"),
                (b"not gzipped", "BadGzipFile"),
                (b"", "expected a header"),
                (gzip.compress(IDX[:9]), "expected a header"),
                (gzip.compress(b"\0\0\x08\x00" + bytes(1)), "expected a header"),
                (gzip.compress(IDX + bytes(50 << 20)), r"\(7, 28, 28\) .* and more"),
                (
                    gzip.compress(struct.pack(">4I", 0x803, *3 * [2**32 - 1])),
                    "values, got 0",
                ),
            ]
        )
    ],
)
def test_idx_files_that_lie(idx_files, tmp_path, monkeypatch, data, message):
    name, get, _ = idx_files
    file = "train-images-idx3-ubyte.gz"
    (tmp_path / file).write_bytes(data)
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    monkeypatch.setitem(SOURCES[name].checksums, file, digest)
    with pytest.raises(FileFormatError, match=f"idx: .*{file}.*{message}"):
        get()


def _link(info, data):
    info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0


def _short(info, data):
    info.size = 3000


def _folder(info, data):
    info.type, info.size = tarfile.DIRTYPE, 0


def _absent(info, data):
    info.name = "../" + info.name


@pytest.mark.parametrize("change", [_link, _short, _folder, _absent])
def test_archives_with_wrong_headers(tmp_path, monkeypatch, root, change):
    path = tmp_path / "cifar-100-binary.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("train.bin", "test.bin"):
            data = bytes(2 * 3074)
            info = tarfile.TarInfo(f"cifar-100-binary/{name}")
            info.size = len(data)
            if name == "test.bin":
                change(info, data)
            archive.addfile(info, io.BytesIO(data))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(cifar, "_MIRROR", tmp_path.as_uri() + "/")
    load = cifar._load
    monkeypatch.setattr(cifar, "_load", lambda n, checksum, *a: load(n, digest, *a))
    with pytest.raises(FileFormatError, match="cifar: .*tar.gz: expected an archive"):
        datasets.get_cifar100()
    assert not (root / "pfnet/chainer/cifar/cifar-100.npz").exists()


def test_a_damaged_cache_is_named(idx_files, root):
    name, get, _ = idx_files
    get()
    path = root / "pfnet" / "chainer" / name / "train.npz"
    content = path.read_bytes()
    for damage in (content[:-100], b"", content[:90] + b"\xff" + content[91:]):
        path.write_bytes(damage)
        with pytest.raises(FileFormatError, match="train.npz"):
            get()


def test_a_damaged_mat_file(svhn_files, tmp_path, monkeypatch):
    for data in (b"MATLAB", (tmp_path / "train_32x32.mat").read_bytes()[:-200]):
        (tmp_path / "train_32x32.mat").write_bytes(data)
        digest = "md5:" + hashlib.md5(data).hexdigest()
        monkeypatch.setitem(svhn._CHECKSUMS, "train", digest)
        with pytest.raises(FileFormatError, match="svhn: .*train_32x32.mat"):
            datasets.get_svhn()
        for file in (tmp_path / "root").rglob("train_32x32.mat"):
            file.unlink()
