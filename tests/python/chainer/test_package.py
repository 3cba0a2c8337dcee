"""The package ``chainer`` under the alias: renga's attributes, Chainer's version."""

import pickle
import re
import textwrap
from pathlib import Path

import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.chainer.missing_packages import MODULES
from tests.scripts import run_program


def run(code, *arguments):
    """The output of a program with the alias."""
    code = "import renga.chainer\nrenga.chainer.install()\n" + textwrap.dedent(code)
    done = run_program(code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_versions():
    code = """
        import importlib.metadata
        import chainer, chainermn, chainer._version, renga
        from chainer import testing
        from chainer._runtime_info import _get_runtime_info

        @testing.with_requires("chainer>=7.8", "chainer<8")
        def needs_seven():
            print("seven")

        @testing.without_requires("chainer>=7")
        def needs_six():
            print("six")

        print(chainer.__version__, chainer._version.__version__)
        print(chainermn.__version__, _get_runtime_info().chainer_version)
        print(importlib.metadata.version("chainer"))
        print(renga.__version__, importlib.metadata.version("numpy") != "7.8.1")
        needs_seven()
        try:
            needs_six()
        except Exception as error:
            print(type(error).__name__)
    """
    expected = ["7.8.1"] * 5 + [renga.__version__, "True", "seven", "SkipTest"]
    assert run(code) == expected


def test_attributes_are_those_of_renga():
    code = """
        import unittest.mock
        import chainer, renga
        import chainer.training.extensions

        chainer.something = 1
        assert renga.something == 1 and vars(chainer)["something"] == 1
        del chainer.something
        assert not hasattr(renga, "something")
        report = renga.report
        with unittest.mock.patch("chainer.report") as patched:
            assert renga.report is patched
        assert renga.report is chainer.report is report
        with unittest.mock.patch("chainer.absent", create=True):
            assert chainer.absent is renga.absent
        assert not hasattr(renga, "absent")
        chainer.disable_experimental_feature_warning = True
        assert renga.disable_experimental_feature_warning
        assert {"Variable", "functions", "config"} <= set(dir(chainer))
        assert renga.__name__ == renga.__spec__.name == "renga"
        assert chainer.__name__ == chainer.__spec__.name == "chainer"
        from chainer import *
        assert chainer.__name__ == "chainer" and Variable is renga.Variable
        try:
            chainer.Varable
        except AttributeError as error:
            print("Variable" in str(error))
    """
    assert run(code) in (["True"], ["False"])


def test_functions_are_pickled_by_their_names(tmp_path):
    """All of them, in every protocol, and they are read without the alias, too."""
    code = """
        import pickle, sys
        import chainer.functions as F
        import chainer.links as L

        names = [name for name in dir(F) if name[0] != "_"]
        functions = {n: getattr(F, n) for n in names if callable(getattr(F, n))}
        for function in functions.values():
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                assert pickle.loads(pickle.dumps(function, protocol)) is function
        models = L.Classifier(L.Linear(2, 2)), L.Classifier(L.Linear(2, 2), F.hinge)
        again = pickle.loads(pickle.dumps(models))
        assert [m.lossfun for m in again] == [F.softmax_cross_entropy, F.hinge]
        assert again[0].accfun is F.accuracy
        with open(sys.argv[1], "wb") as file:
            pickle.dump((functions, models), file)
        print(len(functions))
    """
    (count,) = run(code, str(tmp_path / "file"))
    functions, models = pickle.loads((tmp_path / "file").read_bytes())
    assert int(count) == len(functions) > 200
    for name, function in functions.items():
        assert function is getattr(F, name)
    assert isinstance(models[0], L.Classifier) and models[1].lossfun is F.hinge


def test_networks_are_exported():
    """Functions are recorded by the operations that compute them, in graphs as well."""
    code = """
        import chainer, numpy, onnxruntime
        import chainer.functions as F
        import chainer.links as L
        from renga.exporters.onnx import export

        class Net(chainer.Chain):
            def __init__(self):
                super().__init__()
                with self.init_scope():
                    self.conv = L.Convolution2D(3, 4, 3)
                    self.norm = L.BatchNormalization(4)
                    self.last = L.Linear(None, 5)

            def forward(self, x):
                h = F.max_pooling_2d(F.relu(self.norm(self.conv(x))), 2)
                h = F.stack([h, F.pad(h, ((0, 0),) * 4, "constant")], 2)[:, ::-1]
                h = F.dropout(F.clip(h, 0.1, 0.9)) + F.mean(h)
                return F.softmax(self.last(F.average(h, axis=2)))

        class Names(chainer.FunctionHook):
            name = "names"
            found = []

            def forward_postprocess(self, function, in_data):
                self.found.append(function.label)

        x = numpy.random.RandomState(0).randn(2, 3, 8, 8).astype("f")
        net = Net()
        with Names():
            file = export(net, x).SerializeToString()
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        (y,) = session.run(None, {"input_0": x})
        with chainer.using_config("train", False):
            numpy.testing.assert_allclose(y, net(x).array, rtol=1e-5)
        # Without an exporter, hooks see Chainer's functions again.
        Names.found.clear()
        with Names():
            F.max_pooling_2d(x, 2)
        print(*Names.found)
    """
    pytest.importorskip("onnxruntime")
    assert run(code) == ["MaxPoolingND"]


@pytest.mark.parametrize(
    ("module", "explained"),
    [("six", True), ("google.protobuf", True), ("nothing_like_it", False)],
)
def test_missing_packages_are_named(module, explained):
    """Those that an installation of Chainer brought."""
    code = f"""
        import sys
        import renga.chainer
        renga.chainer.install()
        sys.modules.update(dict.fromkeys(["six", "google"]))
        import {module}
    """
    done = run_program(code)
    assert done.returncode == 1 and "ModuleNotFoundError" in done.stderr
    assert module in done.stderr
    assert ("pip install 'renga[chainer]'" in done.stderr) == explained


def test_the_extra_has_what_is_named():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    packages = re.findall(r'"(\w+)"', re.search(r"\nchainer = (.*)", text)[1])
    modules = {"pillow": "PIL", "protobuf": "google"}
    assert sorted(modules.get(p, p) for p in packages) == sorted(MODULES)


def test_programs_replace_the_loop_of_a_trainer():
    # They read and set what Chainer's loop does.
    code = """
        import time
        from chainer.testing import get_trainer_with_mock_updater
        from chainer.training import Trainer, extensions, triggers

        class Own(Trainer):
            def run(self):
                assert not self._done and self._start_at is None
                self._start_at = time.perf_counter() - 100
                assert 100 < self.elapsed_time < 150
                self._snapshot_elapsed_time += 1000
                order = sorted(
                    self._extensions, key=lambda n: -self._extensions[n].priority
                )
                while not self.stop_trigger(self):
                    self.observation = {}
                    with self.reporter.scope(self.observation):
                        self.updater.update()
                        for name in order:
                            if self._extensions[name].trigger(self):
                                self._extensions[name].extension(self)
                self._final_elapsed_time = self.elapsed_time
                self._done = True
                assert self._done and 1100 < self.elapsed_time < 1150

        class Odd(triggers.IntervalTrigger):
            def __call__(self, trainer):
                before = self._previous_iteration
                self._previous_iteration = trainer.updater.iteration
                self._previous_epoch_detail = trainer.updater.epoch_detail
                return before % 2 == 0

        def kept(trainer):
            print(trainer.updater.iteration)

        def removed(trainer):
            print("removed")

        updater = get_trainer_with_mock_updater().updater
        trainer = Own(updater, (4, "iteration"))
        trainer.extend(kept, trigger=Odd(1, "iteration"))
        trainer.extend(removed)
        del trainer._extensions["removed"]
        trainer.run()
    """
    assert run(code) == ["1", "3"]
