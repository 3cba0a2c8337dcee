"""Loading is atomic: on failure an object keeps its values."""

import os
import subprocess
import sys
import textwrap
import types
import warnings

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizers, serializers
from renga.reporter import DictSummary
from renga.serializers import DictionarySerializer, FileFormatError, NpzDeserializer


def model(value, out=3):
    chain = renga.Chain(
        a=L.Linear(4, 3), bn=L.BatchNormalization(3), z=L.Linear(3, out)
    )
    for param in chain.params():
        param.array[...] = value
    chain.bn.avg_mean[...] = value
    chain.bn.N = int(value)
    return chain


def state(obj):
    serializer = DictionarySerializer()
    serializer.save(obj)
    return {
        key: (array.dtype, array.shape, array.tobytes())
        for key, array in serializer.target.items()
    }


FORMATS = ["npz", "hdf5", "safetensors"]


@pytest.fixture(params=FORMATS)
def kind(request):
    pytest.importorskip(
        {"hdf5": "h5py", "safetensors": "safetensors"}.get(request.param, "numpy")
    )
    return request.param


def test_the_last_array_does_not_fit(tmp_path, kind):
    getattr(serializers, f"save_{kind}")(tmp_path / "f", model(2, out=5))
    target = model(1)
    arrays = [param.array for param in target.params()]
    before = state(target)
    with pytest.raises(ValueError, match=r"'z/W'.*\(3, 3\), got \(5, 3\)"):
        getattr(serializers, f"load_{kind}")(tmp_path / "f", target)
    assert state(target) == before
    assert all(p.array is a for p, a in zip(target.params(), arrays))


def test_the_last_name_is_missing(tmp_path, kind):
    smaller = renga.Chain(a=L.Linear(4, 3), bn=L.BatchNormalization(3))
    getattr(serializers, f"save_{kind}")(tmp_path / "f", smaller)
    target = model(1)
    before = state(target)
    with pytest.raises(KeyError, match="z/"):
        getattr(serializers, f"load_{kind}")(tmp_path / "f", target)
    assert state(target) == before


def test_the_last_array_cannot_be_written(tmp_path, kind):
    getattr(serializers, f"save_{kind}")(tmp_path / "f", model(2))
    target = model(1)
    frozen = numpy.ones((3, 3), "f4")
    frozen.flags.writeable = False
    target.z.W.array = frozen
    before = state(target)
    with pytest.raises(ValueError, match="can be written"):
        getattr(serializers, f"load_{kind}")(tmp_path / "f", target)
    assert state(target) == before


def test_an_uninitialized_parameter_stays_uninitialized(tmp_path, kind):
    def lazy():
        return renga.Chain(a=L.Linear(None, 3), z=L.Linear(3, 3))

    source = renga.Chain(a=L.Linear(4, 3), z=L.Linear(3, 5))
    getattr(serializers, f"save_{kind}")(tmp_path / "f", source)
    target = lazy()
    with pytest.raises(ValueError, match="z/W"):
        getattr(serializers, f"load_{kind}")(tmp_path / "f", target)
    assert not target.a.W.is_initialized and target.a.W.array is None
    x = numpy.ones((2, 7), "f4")  # another size than that of the file
    y = target.z(F.relu(target.a(x)))
    F.sum(y).backward()
    assert target.a.W.grad.shape == (3, 7)


def test_links_serialized_by_another_object(tmp_path):
    """Links get their old values back, whichever object serializes them."""

    class Two:
        def __init__(self, width):
            self.waiting, self.full = L.Linear(None, 3), L.Linear(4, width)

        def serialize(self, serializer):
            self.waiting.serialize(serializer["waiting"])
            self.full.serialize(serializer["full"])

    source, target = Two(5), Two(3)
    source.waiting(numpy.ones((1, 4), "f4"))
    serializers.save_npz(tmp_path / "f", source)
    with pytest.raises(ValueError, match="full/W"):
        serializers.load_npz(tmp_path / "f", target)
    assert not target.waiting.W.is_initialized


def test_the_state_of_an_optimizer(tmp_path):
    def trained(out, steps):
        numpy.random.seed(0)
        chain = renga.Chain(a=L.Linear(4, 3), z=L.Linear(3, out))
        optimizer = optimizers.Adam().setup(chain)
        for _ in range(steps):
            loss = F.sum(chain.z(chain.a(numpy.ones((2, 4), "f4"))))
            chain.cleargrads()
            loss.backward()
            optimizer.update()
        return chain, optimizer

    serializers.save_npz(tmp_path / "f", trained(5, 3)[1])
    for steps in (0, 2):
        chain, optimizer = trained(3, steps)
        other, twin = trained(3, steps)
        before = state(optimizer)
        with pytest.raises((ValueError, KeyError)):
            # Without a state every shape fits; only the name does not.
            load = NpzDeserializer(_without_last(tmp_path / "f"))
            load.load(optimizer)
        assert state(optimizer) == before
        for net, rule in ((chain, optimizer), (other, twin)):
            F.sum(net.z(net.a(numpy.ones((2, 4), "f4")))).backward()
            rule.update()
        numpy.testing.assert_array_equal(chain.a.W.array, other.a.W.array)


def _without_last(path):
    with numpy.load(path, allow_pickle=True) as archive:
        names = sorted(archive)
        return {name: archive[name] for name in names if not name.startswith("z/b")}


def test_a_summary_keeps_its_values_on_failure():
    summary, other = DictSummary(), DictSummary()
    summary.add({"loss": 3.0})
    other.add({"accuracy": 1.0})
    source = DictionarySerializer()
    source.save(other)

    class Broken(dict):
        def __getitem__(self, key):
            if key == "_summaries/0/_n":
                raise OSError(key)
            return super().__getitem__(key)

    with pytest.raises(OSError):
        NpzDeserializer(Broken(source.target)).load(summary)
    assert summary.compute_mean() == {"loss": 3.0}


def test_an_interrupt_during_loading():
    target = model(1)
    before = state(target)
    source = DictionarySerializer()
    source.save(model(2))

    class Interrupted(dict):
        def __getitem__(self, key):
            if key == "z/b":
                raise KeyboardInterrupt
            return super().__getitem__(key)

    with pytest.raises(KeyboardInterrupt):
        NpzDeserializer(Interrupted(source.target)).load(target)
    assert state(target) == before


def test_values_of_objects_of_users():
    class Mine:
        epoch, text = 3, "old"
        order = numpy.arange(4)

        def serialize(self, serializer):
            self.epoch = serializer("epoch", self.epoch)
            self.text = serializer("text", self.text)
            self.order = serializer("order", numpy.array(self.order))
            serializer("missing", 0)

    mine = Mine()
    stored = {"epoch": numpy.array(9), "text": numpy.array("new")}
    with pytest.raises(KeyError, match="missing"):
        NpzDeserializer({**stored, "order": numpy.zeros(4, int)}).load(mine)
    assert (mine.epoch, mine.text, mine.order.tolist()) == (3, "old", [0, 1, 2, 3])


def test_a_warning_if_no_name_matches(tmp_path, kind):
    getattr(serializers, f"save_{kind}")(tmp_path / "f", model(2))
    target = renga.Chain(other=L.Linear(4, 3))
    if kind == "hdf5":
        with pytest.raises(KeyError):
            serializers.load_hdf5(tmp_path / "f", target)
        return
    load = getattr(serializers, f"load_{kind}")
    with pytest.warns(
        UserWarning, match="nothing was loaded: none of 2 names.*f'"
    ) as w:
        load(tmp_path / "f", target, strict=False)
    assert w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(
            tmp_path / "f",
            renga.Chain(a=L.Linear(4, 3), y=L.Linear(1, 1)),
            strict=False,
        )


def test_files_that_cannot_seek_and_paths_of_all_kinds(tmp_path, kind):
    save = getattr(serializers, f"save_{kind}")
    load = getattr(serializers, f"load_{kind}")
    for name in ("連歌 \u00e9.npz", " ", "a\nb", "-rf", "x" * 255, "é" * 127):
        path = tmp_path / name
        for given in (path, str(path), os.fsencode(path)):
            save(given, model(2))
            target = model(1)
            load(given, target)
            assert state(target) == state(model(2))
        assert os.listdir(tmp_path) == [name]
        path.unlink()
    undecodable = os.fsencode(tmp_path) + b"/\xff\xfe"
    save(undecodable, model(2))
    load(os.fsdecode(undecodable), model(1))
    read, write = os.pipe()
    with os.fdopen(read, "rb") as source, os.fdopen(write, "wb") as sink:
        with pytest.raises(OSError):
            sink.seek(0)
        save(sink, renga.Chain(a=L.Linear(4, 3)))  # less than a pipe holds
        sink.close()
        load(source, renga.Chain(a=L.Linear(4, 3)))
    for given in (tmp_path / "text", 3.5, None):
        with pytest.raises(TypeError):
            if given == tmp_path / "text":
                with open(given, "w+") as text:
                    save(text, model(2))
            else:
                load(given, model(1))


def test_two_processes_that_write_the_same_file(tmp_path):
    path = tmp_path / "f"
    program = f"""
        import sys, types, numpy
        from renga import serializers
        value = float(sys.argv[1])
        noise = numpy.full(200_000, value)
        one = types.SimpleNamespace(serialize=lambda s: s("a", noise))
        for _ in range(30):
            serializers.save_npz({str(path)!r}, one, compression=False)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    writers = [subprocess.Popen([*command, str(i)]) for i in (1, 2)]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        array = numpy.zeros(200_000)
        one = types.SimpleNamespace(serialize=lambda s, a=array: s("a", a))
        if path.exists():
            serializers.load_npz(path, one)
            assert (array == array[0]).all()
            seen.add(array[0])
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen <= {1.0, 2.0} and seen
    assert os.listdir(tmp_path) == ["f"]


def test_the_error_is_a_value_error_that_names_the_file(tmp_path):
    (tmp_path / "f").write_bytes(b"PK\x05\x06" + bytes(10))
    with pytest.raises(ValueError, match="f'") as caught:
        serializers.load_npz(tmp_path / "f", model(1))
    assert caught.type is FileFormatError
