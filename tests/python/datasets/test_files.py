"""Data sets that read images, text and pickles from files."""

import gc
import pickle
import resource
import struct
import warnings
import zipfile
import zlib

import numpy
import pytest

from renga import datasets
from renga.serializers import FileFormatError

Image = pytest.importorskip("PIL.Image")

COLOUR = numpy.random.default_rng(0).integers(0, 256, (4, 5, 3), dtype=numpy.uint8)
GRAY = numpy.arange(20, dtype=numpy.uint8).reshape(4, 5)


@pytest.fixture
def folder(tmp_path):
    Image.fromarray(COLOUR).save(tmp_path / "a.png")
    Image.fromarray(GRAY).save(tmp_path / "b b.png")
    (tmp_path / "list.txt").write_text("a.png\nb b.png\n\n")
    (tmp_path / "pairs.txt").write_text("a.png 3\nb b.png 5\n")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in ("b b.png", "list.txt", "a.png"):
            archive.write(tmp_path / name, name)
    return tmp_path


def check(example, expected, dtype="f4"):
    assert example.dtype == dtype
    expected = expected[None] if expected.ndim == 2 else expected.transpose(2, 0, 1)
    numpy.testing.assert_array_equal(example, expected)


def test_images(folder):
    for paths in (str(folder / "list.txt"), ["a.png", "b b.png"]):
        dataset = datasets.ImageDataset(paths, root=str(folder))
        assert len(dataset) == 2
        check(dataset[0], COLOUR)
        check(dataset[1], GRAY)
    half = datasets.ImageDataset(["a.png"], str(folder), dtype=numpy.float16)
    check(half[0], COLOUR, "f2")


def test_labeled_images(folder):
    for pairs in (str(folder / "pairs.txt"), [("a.png", 3), ("b b.png", 5)]):
        dataset = datasets.LabeledImageDataset(pairs, root=str(folder))
        assert len(dataset) == 2
        image, label = dataset[1]
        check(image, GRAY)
        assert label == 5 and label.dtype == numpy.int32 and label.shape == ()
    dataset = datasets.LabeledImageDataset(pairs, str(folder), label_dtype="f4")
    assert dataset[0][1].dtype == numpy.float32


def test_a_line_without_a_label(folder):
    (folder / "pairs.txt").write_text("a.png 3\nb.png\n")
    with pytest.raises(ValueError, match="line 2, got 'b.png'"):
        datasets.LabeledImageDataset(str(folder / "pairs.txt"))


def test_zipped_images(folder):
    path = str(folder / "all.zip")
    dataset = datasets.ZippedImageDataset(path)
    assert len(dataset) == 2
    check(dataset[0], GRAY)
    check(pickle.loads(pickle.dumps(dataset))[1], COLOUR)
    check(dataset.get_example("a.png"), COLOUR)
    several = datasets.MultiZippedImageDataset([path, path], dtype="f8")
    assert len(several) == 4
    for i, expected in enumerate([GRAY, COLOUR] * 2):
        check(several[i], expected, "f8")
    check(several[-1], COLOUR, "f8")
    with pytest.raises(IndexError, match="below 4, got 4"):
        several[4]
    labeled = datasets.LabeledZippedImageDataset(path, str(folder / "pairs.txt"))
    assert len(labeled) == 2 and labeled[0][1] == 3
    check(labeled[0][0], COLOUR)


def test_text(folder):
    first, second = str(folder / "list.txt"), str(folder / "pairs.txt")
    (folder / "list.txt").write_text("a.png\nb b.png\n")
    with datasets.TextDataset(first) as lines:
        assert lines[:] == ["a.png\n", "b b.png\n"]
    both = datasets.TextDataset([first, second], encoding=["ascii", "utf-8"])
    assert both[1] == ("b b.png\n", "b b.png 5\n") and len(both) == 2
    again = pickle.loads(pickle.dumps(both))
    assert again[0] == ("a.png\n", "a.png 3\n")
    chosen = datasets.TextDataset(
        [first, second], filter_func=lambda name, pair: "5" in pair
    )
    assert chosen[:] == [("b b.png\n", "b b.png 5\n")]
    for dataset in (both, again, chosen):
        dataset.close()


@pytest.mark.parametrize(
    "make, name",
    [(datasets.ZippedImageDataset, "all.zip"), (datasets.TextDataset, "pairs.txt")],
)
def test_files_are_closed_with_the_data_set(folder, make, name):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        data = make(str(folder / name))
        assert len(data) > 0
        del data
        gc.collect()
    assert not seen, seen[0]


def test_text_of_several_bytes_a_letter(tmp_path):
    (tmp_path / "a").write_bytes("連歌\r\nrenga\r\nend".encode("utf-16"))
    with datasets.TextDataset(str(tmp_path / "a"), encoding="utf-16") as lines:
        assert lines[:] == ["連歌\n", "renga\n", "end"]
    (tmp_path / "b").write_bytes(b"1\r\n2\n")
    with datasets.TextDataset(str(tmp_path / "b"), newline="\n") as lines:
        assert lines[:] == ["1\r\n", "2\n"]


def test_texts_that_do_not_match(folder):
    (folder / "short").write_text("x\n")
    (folder / "list.txt").write_text("a.png\nb b.png\n")
    paths = [str(folder / "short"), str(folder / "list.txt")]
    with pytest.raises(ValueError, match=r"\[1, 2\] lines"):
        datasets.TextDataset(paths)
    with pytest.raises(ValueError, match="2 files"):
        datasets.TextDataset(paths, encoding=["ascii"])
    with pytest.raises(FileNotFoundError):
        datasets.TextDataset(str(folder / "none"))


def test_pickles(tmp_path):
    path = str(tmp_path / "examples")
    with datasets.open_pickle_dataset_writer(path) as writer:
        writer.write({"a": numpy.arange(3)})
        writer.flush()
        writer.write([2, 3])
    with open(path, "ab") as file:  # as Chainer's does: pickles in a row
        pickle.dump("third", file)
    with datasets.open_pickle_dataset(path) as dataset:
        assert len(dataset) == 3 and dataset[2] == "third" and dataset[1] == [2, 3]
        numpy.testing.assert_array_equal(dataset[0]["a"], [0, 1, 2])
        with pickle.loads(pickle.dumps(dataset)) as again:
            assert again[1:] == [[2, 3], "third"]
    with pytest.raises(ValueError, match="closed file"):
        dataset[0]


def test_paths_may_be_pathlibs(folder):
    listed = datasets.ImageDataset(folder / "list.txt", root=folder)
    check(listed[1], GRAY)
    check(datasets.ImageDataset([folder / "a.png"])[0], COLOUR)
    assert datasets.LabeledImageDataset(folder / "pairs.txt", folder)[1][1] == 5
    check(datasets.ZippedImageDataset(folder / "all.zip")[0], GRAY)
    path = folder / "all.zip"
    labeled = datasets.LabeledZippedImageDataset(path, folder / "pairs.txt")
    check(labeled[0][0], COLOUR)
    with datasets.TextDataset(folder / "pairs.txt") as lines:
        assert len(lines) == 2
    with datasets.open_pickle_dataset_writer(folder / "p") as writer:
        writer.write(1)
    with datasets.open_pickle_dataset(folder / "p") as dataset:
        assert dataset[0] == 1


@pytest.mark.parametrize(
    "line",
    ["a.png x", "a.png 1.5", "a.png 1_000", "a.png " + "9" * 5000, "a.png", " 3"],
)
def test_lines_without_an_integer_label(folder, line):
    (folder / "pairs.txt").write_text("a.png 1\n" + line + "\n")
    for load in (
        lambda: datasets.LabeledImageDataset(folder / "pairs.txt"),
        lambda: datasets.LabeledZippedImageDataset(
            folder / "all.zip", folder / "pairs.txt"
        ),
    ):
        with pytest.raises(FileFormatError, match="pairs.txt: .* in line 2, got"):
            load()


def test_lists_that_are_no_text(folder):
    (folder / "list.txt").write_bytes(b"a.png\n\xff\xfe\n")
    with pytest.raises(FileFormatError, match="list.txt: expected lines of text"):
        datasets.ImageDataset(folder / "list.txt")
    with pytest.raises(FileFormatError, match="list.txt: expected text in utf-8"):
        datasets.TextDataset(folder / "list.txt", encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-40],
        lambda data: data[:20],
        lambda data: b"",
        lambda data: b"not an image",
        lambda data: data[:40] + b"\xff" * 20 + data[60:],
    ],
)
def test_damaged_images(folder, damage):
    path = folder / "a.png"
    path.write_bytes(damage(path.read_bytes()))
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.write(path, "a.png")
    with pytest.raises(FileFormatError, match="a.png: expected an image, got"):
        datasets.ImageDataset(["a.png"], folder)[0]
    with pytest.raises(FileFormatError, match="all.zip: a.png: expected an image, got"):
        datasets.ZippedImageDataset(folder / "all.zip")[0]
    with pytest.raises(FileNotFoundError):
        datasets.ImageDataset(["none.png"], folder)[0]


def test_damaged_archives_of_images(folder):
    path = folder / "all.zip"
    with pytest.raises(KeyError, match="none.png.*all.zip"):
        datasets.ZippedImageDataset(path).get_example("none.png")
    content = path.read_bytes()
    at = content.index(b"PNG") + 30
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(FileFormatError, match="all.zip: b b.png: expected an image"):
        datasets.ZippedImageDataset(path)[0]
    path.write_bytes(content[:-30])
    with pytest.raises(FileFormatError, match="all.zip: expected a zip archive, got"):
        datasets.ZippedImageDataset(path)


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_truncated_pickle_is_not_the_end(tmp_path, cut):
    with datasets.open_pickle_dataset_writer(tmp_path / "p") as writer:
        writer.write("first")
        writer.write(numpy.arange(3))
    content = (tmp_path / "p").read_bytes()
    (tmp_path / "p").write_bytes(content[:-cut])
    with pytest.raises(FileFormatError, match=r"a complete pickle at byte \d+ of .*p'"):
        datasets.open_pickle_dataset(tmp_path / "p")


def png(width, height):
    """A complete header of an image, and almost no pixels."""

    def chunk(name, data):
        crc = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)

    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(100)))
        + chunk(b"IEND", b"")
    )


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [10_000, 13_000, 100_000, 2**31 - 1])
def test_images_that_claim_to_be_large(folder, side):
    (folder / "a.png").write_bytes(png(side, side))
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.write(folder / "a.png", "a.png")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for dataset in (
        datasets.ImageDataset(["a.png"], folder),
        datasets.ZippedImageDataset(folder / "all.zip"),
    ):
        with pytest.raises(FileFormatError, match="a.png: expected an image, got"):
            dataset[0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_a_large_image_of_one_colour(folder):
    Image.new("L", (4000, 4000), 7).save(folder / "a.png")
    image = datasets.ImageDataset(["a.png"], folder, dtype="u1")[0]
    assert image.shape == (1, 4000, 4000) and (image == 7).all()
