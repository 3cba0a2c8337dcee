"""Chainer's names are renga's: the same objects, in every kind of process."""

import os
import subprocess
import sys

import pytest

from tests.scripts import run_program


def run(code):
    """The output of Python code in a process of its own."""
    done = run_program(code)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def run_module(*arguments, folder):
    """The output of ``python -m renga.chainer``."""
    path = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-m", "renga.chainer", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_modules_are_the_same():
    code = """
        from renga.chainer import install
        install()
        install()
        import chainer, chainermn, chainerx
        import chainer.functions as F
        import chainer.links as L
        from chainer.training import extensions
        import chainer.training.extensions
        import chainer.dataset.convert, chainer.cuda, chainermn.communicators
        from chainer.backends import cuda
        import renga

        assert F is chainer.functions is renga.functions and L is renga.links
        assert chainer.Variable is renga.Variable and chainer.config is renga.config
        assert chainer.training.extensions.Evaluator is extensions.Evaluator
        assert chainer.dataset.convert is renga.dataset.convert
        assert chainer.cuda is cuda is renga.backends.cuda
        assert chainermn is renga.distributed
        assert chainermn.communicators is renga.communicators
        assert not chainerx.is_available()
        assert renga.functions.__spec__.name == renga.functions.__name__
    """
    run(code)


def test_private_modules():
    code = """
        from renga.chainer import install
        install()
        import chainer.functions.activation.relu
        from chainer.functions.math import basic_math, minmax
        from chainer.links.connection.linear import Linear
        from chainer.links.connection import convolution_2d
        from chainer.training.extensions.evaluator import Evaluator
        from chainer.training import extension, trigger as trigger_module, util
        import renga

        assert chainer.functions.activation.relu.relu is renga.functions.relu
        assert minmax.argmax is renga.functions.argmax
        assert basic_math.add is renga.functions.add
        assert Linear is renga.links.Linear
        assert convolution_2d.Convolution2D is renga.links.Convolution2D
        assert Evaluator is renga.extensions.Evaluator
        for wrong in ("chainer.nothing", "chainer.functions.activation.nothing"):
            try:
                __import__(wrong)
            except ModuleNotFoundError as error:
                assert error.name == wrong
            else:
                raise AssertionError(wrong)
        try:
            from chainer.functions.activation.relu import nothing
        except ImportError:
            print("none")
    """
    assert run(code) == ["none"]


def test_names_that_chainers_modules_import():
    code = """
        from renga.chainer import install
        install()
        import chainer, chainer.types
        from chainer import functions, variable
        from chainer.functions.math import basic_math
        from chainer.variable import Parameter, chainerx
        import renga, numpy

        assert chainer.basic_math is basic_math and variable.cuda is chainer.cuda
        assert Parameter is renga.Parameter and chainer.chainerx is chainerx
        assert chainer.types.NdArray is numpy.ndarray
        assert functions.rnn.n_step_lstm.n_step_lstm is functions.n_step_lstm
        assert str(chainer.Fallback) == "Fallback"
        x = numpy.zeros(2)
        assert chainer.is_arrays_compatible([x, None, chainer.Variable(x)])
        assert not chainer.is_arrays_compatible([1.0])
        assert {"connection", "rnn"} <= set(dir(chainer.links))
    """
    run(code)


def test_pickles_of_chainer_can_be_read():
    text = "cchainer.links.connection.linear\nLinear\n."
    code = f"""
        import pickle
        from renga.chainer import install
        install()
        import renga
        assert pickle.loads({text.encode()!r}) is renga.links.Linear
    """
    run(code)


def test_renga_s_own_pickles_and_copies_with_the_alias():
    code = """
        import copy, pickle
        from renga.chainer import install
        install()
        import numpy
        import renga
        import renga.functions as F
        import renga.links as L

        x = numpy.ones((2, 3), "f")
        model = renga.Sequential(L.Linear(3, 2), L.BatchNormalization(2))
        optimizer = renga.optimizers.Adam().setup(model)
        optimizer.add_hook(renga.optimizer_hooks.WeightDecay(0.1))
        iterator = renga.iterators.SerialIterator(list(range(9)), 2)
        iterator.next()
        optimizer.update(lambda: F.sum(model(x) ** 2))
        for clone in (copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))):
            m, o, i = clone((model, optimizer, iterator))
            o.update(lambda: F.sum(m(x) ** 2))
            assert (o.t, o.target is m, i.next()) == (2, True, clone(iterator).next())
        optimizer.update(lambda: F.sum(model(x) ** 2))
        for one, other in zip(m.params(), model.params()):
            numpy.testing.assert_array_equal(one.array, other.array)
    """
    run(code)


def test_hooks_of_a_script_see_functions_with_chainers_classes():
    # The names and classes that the methods of a hook get in Chainer 7.8.1.
    code = """
        from renga.chainer import install
        install()
        import chainer, numpy
        import chainer.functions as F
        from chainer.functions.activation.relu import ReLU
        from chainer.functions.loss.softmax_cross_entropy import SoftmaxCrossEntropy
        from chainer.functions.noise.dropout import Dropout

        class Base(chainer.FunctionHook):
            def __init__(self):
                self.forward, self.backward = [], []

            def forward_preprocess(self, function, in_data):
                self.started = function

            def forward_postprocess(self, function, in_data):
                if type(self.started).__name__ != "SoftmaxCrossEntropy":
                    assert function == self.started
                assert not hasattr(function, "mask")
                self.see(self.forward, function)

            def backward_postprocess(self, function, in_data, out_grad):
                self.see(self.backward, function)

            def see(self, seen, function):
                name = type(function).__name__
                assert name == function.__class__.__name__ == function._impl_name
                assert function.label == name
                for cls in (ReLU, Dropout, SoftmaxCrossEntropy):
                    assert isinstance(function, cls) == (name == cls.__name__)
                seen.append(name)

        class Hook(Base):
            def forward_preprocess(self, function, in_data):
                super().forward_preprocess(function, in_data)

        def ones(*shape):
            return chainer.Parameter(numpy.ones(shape, "f"))

        with Hook() as hook:
            x = F.convolution_2d(ones(2, 1, 4, 4), ones(3, 1, 3, 3))
            x = F.deconvolution_2d(F.relu(x), ones(3, 1, 2, 2))
            y = F.linear(F.reshape(F.dropout(x), (2, 9)), ones(2, 9))
            F.sigmoid_cross_entropy(y, numpy.zeros((2, 2), "i"))
            F.softmax_cross_entropy(y, numpy.zeros(2, "i")).backward()
        names = hook.forward[:6] + hook.forward[-1:]
        assert names == hook.backward[::-1], (names, hook.backward)
        print(*hook.forward)
    """
    names = run(code)
    assert (
        names
        == (
            "Convolution2DFunction ReLU Deconvolution2DFunction Dropout Reshape "
            "LinearFunction SigmoidCrossEntropy SoftmaxCrossEntropy"
        ).split()
    )


def test_the_alias_precedes_an_installed_chainer():
    code = """
        import sys, types
        sys.modules["chainer"] = types.ModuleType("chainer")
        from renga.chainer import install
        try:
            install()
        except RuntimeError as error:
            print(error)
    """
    assert "['chainer']" in run(code)


SCRIPT = """
import argparse
import multiprocessing
import sys

import chainer
import chainer.functions as F
from chainer import links as L


class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(2, 1)


def child(queue, model):
    queue.put((chainer.__version__, __name__, type(model).__module__, model.l.W.shape))
    queue.put(model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--method")
    method = parser.parse_args().method
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=child, args=(queue, Model()))
    process.start()
    name, main, module, shape = queue.get(timeout=50)
    assert isinstance(queue.get(timeout=50), Model)
    process.join()
    assert shape == (1, 2)
    same = F.relu is sys.modules["renga"].functions.relu
    print(name, main, module, sys.argv[0], same)
"""


@pytest.mark.parametrize(
    ("method", "main"),
    [("fork", "__main__"), ("spawn", "__mp_main__"), ("forkserver", "__mp_main__")],
)
def test_scripts_run_and_so_do_their_children(tmp_path, method, main):
    (tmp_path / "script.py").write_text(SCRIPT)
    output = run_module("script.py", "--method", method, folder=tmp_path)
    assert output == ["7.8.1", main, main, "script.py", "True"]


def test_scripts_find_their_own_file(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, inspect\nos.chdir('/')\n"
        "print(__file__, inspect.currentframe().f_code.co_filename)\n"
    )
    output = run_module("script.py", folder=tmp_path)
    assert output == [str(script)] * 2


def test_scripts_have_their_own_future_statements(tmp_path):
    (tmp_path / "script.py").write_text(
        "def f(x: int): pass\nprint(f.__annotations__['x'] is int)\n"
    )
    output = run_module("script.py", folder=tmp_path)
    assert output == ["True"]


def test_scripts_that_are_not_there_are_named(tmp_path):
    command = [sys.executable, "-m", "renga.chainer", "nothing.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "nothing.py" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("method", "main"),
    [("fork", "__main__"), ("spawn", "__mp_main__"), ("forkserver", "__mp_main__")],
)
def test_modules_of_packages_run_and_so_do_their_children(tmp_path, method, main):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("NAME = 'package'\n")
    (package / "train.py").write_text("from . import NAME\n" + SCRIPT)
    output = run_module("-m", "package.train", "--method", method, folder=tmp_path)
    assert output == ["7.8.1", main, main, str(package / "train.py"), "True"]


def test_packages_with_a_main_module_run(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("NAME = 'package'\n")
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys, chainer\nfrom . import NAME\n"
        "print(NAME, __name__, __package__, __spec__.name, *sys.argv[1:])\n"
    )
    output = run_module("-m", "package", "-x", folder=tmp_path)
    assert output == ["package", "__main__", "package", "package.__main__", "-x"]


@pytest.mark.parametrize("name", ["nothing", "nothing.train", "package.nothing"])
def test_modules_that_are_not_there_are_named(tmp_path, name):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    command = [sys.executable, "-m", "renga.chainer", "-m", name]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and f"expected a module after -m, got {name}" in (
        done.stderr
    )
    assert "Traceback" not in done.stderr


def test_copies_and_pickles_of_variables_begin_graphs_of_their_own():
    code = """
        from renga.chainer import install
        install()
        import copy, pickle
        import chainer.functions as F, chainer.links as L, numpy as np

        def pickled(value):
            return pickle.loads(pickle.dumps(value))

        x, t = np.ones((2, 3), "f"), np.array([0, 2], "i")
        classifier = L.Classifier(L.LSTM(3, 4))
        loss = classifier(x, t)
        classifier.predictor.h.unchain()
        classifier.predictor.c.unchain()
        creator = loss.creator
        for copied in (copy.copy, copy.deepcopy, pickled):
            again = copied(loss)
            assert again.creator is None and again.rank == 0
            assert again.array == loss.array and again.requires_grad
            np.testing.assert_array_equal(
                copied(classifier).predictor.h.array, classifier.predictor.h.array
            )
        assert loss.creator is creator
        kept = F.dropout(loss)
        kept.note = "own"
        assert pickled(kept).note == "own"
    """
    run(code)
