"""Settings: Chainer's defaults, thread-local values, and the core's copy."""

import io
import threading

import numpy
import pytest

import renga
from renga import _core, configuration

# Chainer 7.8.1 answers this to config.show() without any environment variable.
DEFAULTS = {
    "autotune": False,
    "compute_mode": None,
    "cudnn_deterministic": False,
    "cudnn_fast_batch_normalization": False,
    "debug": False,
    "dtype": numpy.dtype("float32"),
    "enable_backprop": True,
    "in_recomputing": False,
    "keep_graph_on_report": False,
    "lazy_grad_sum": False,
    "schedule_func": None,
    "train": True,
    "type_check": True,
    "use_cudnn": "auto",
    "use_cudnn_tensor_core": "auto",
    "use_ideep": "never",
    "use_static_graph": True,
    "warn_nondeterministic": False,
}


def in_a_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture
def settings():
    """A pair of settings for one test alone."""
    common = configuration.GlobalConfig()
    common.train = True
    return common, configuration.LocalConfig(common)


@pytest.mark.parametrize(("name", "value"), DEFAULTS.items())
def test_defaults(name, value):
    assert getattr(renga.config, name) == value
    assert getattr(renga.global_config, name) == value


def test_a_thread_overrides_the_global_value(settings):
    common, local = settings
    local.train = False
    assert local.train is False
    assert common.train is True
    assert in_a_thread(lambda: local.train) is True
    del local.train
    assert local.train is True
    common.train = 3
    assert local.train == 3


def test_unknown_names(settings):
    common, local = settings
    for config in settings:
        with pytest.raises(AttributeError):
            config.nothing_of_the_kind  # noqa: B018
    with pytest.raises(AttributeError):
        del local.train
    common.mine = "any key"
    assert local.mine == "any key"


def test_using_config_restores():
    with renga.using_config("train", False):
        assert renga.config.train is False
        with renga.using_config("train", 5):
            assert renga.config.train == 5
        assert renga.config.train is False
    assert renga.config.train is True
    with pytest.raises(ZeroDivisionError), renga.using_config("train", False):
        raise ZeroDivisionError
    assert renga.config.train is True


def test_using_config_takes_any_key_and_any_config(settings):
    with pytest.warns(UserWarning), renga.using_config("a_key_of_mine", 1):
        assert renga.config.a_key_of_mine == 1
    assert not hasattr(renga.config, "a_key_of_mine")
    for config in settings:
        with renga.using_config("train", "other", config):
            assert config.train == "other"
        assert config.train is True


def is_recorded():
    x = renga.Variable(numpy.ones(2))
    return (x * 2).creator_node is not None


@pytest.mark.parametrize(
    "context, name, other",
    [
        (lambda: renga.using_config("train", False), "train", False),
        (renga.no_backprop_mode, "enable_backprop", False),
        (lambda: renga.DebugMode(True), "debug", True),
    ],
)
def test_a_context_is_entered_again(context, name, other):
    kept = context()
    for _ in range(2):
        with kept:
            with kept:
                assert getattr(renga.config, name) is other
            assert getattr(renga.config, name) is other
        assert getattr(renga.config, name) is not other


def test_a_context_that_nobody_keeps_stays_entered():
    def enter():
        renga.using_config("train", False).__enter__()
        renga.no_backprop_mode().__enter__()
        return renga.config.train, renga.config.enable_backprop

    assert in_a_thread(enter) == (False, False)


def test_a_decorated_function_runs_in_several_threads():
    entered, left = threading.Barrier(2), threading.Barrier(2)

    @renga.using_config("train", False)
    def evaluate():
        entered.wait(10)
        return renga.config.train

    def run(i):
        found[i] = evaluate(), renga.config.train
        left.wait(10)

    found = [None, None]
    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(False, True)] * 2


def test_backprop_modes():
    assert is_recorded()
    with renga.no_backprop_mode():
        assert not is_recorded()
        assert in_a_thread(is_recorded)
        with renga.force_backprop_mode():
            assert is_recorded()
        assert not is_recorded()
    assert is_recorded()


def test_the_global_mode_reaches_every_thread_that_did_not_choose():
    with renga.using_config("enable_backprop", False, renga.global_config):
        assert not is_recorded()
        assert not in_a_thread(is_recorded)
        with renga.using_config("enable_backprop", True):
            assert is_recorded()
        assert not is_recorded()
    assert is_recorded()


class Seen(renga.FunctionNode):
    """Notes the setting in its backward pass."""

    def forward(self, inputs):
        return (inputs[0] * 2,)

    def backward(self, target_input_indexes, grad_outputs):
        inside = [renga.config.enable_backprop]
        with renga.force_backprop_mode():
            inside.append(is_recorded())
        self.seen = [*inside, is_recorded()]
        return grad_outputs


@pytest.mark.parametrize("again", [False, True])
def test_a_backward_pass_records_only_for_another_one(again):
    node = Seen()
    (y,) = node.apply((renga.Variable(numpy.ones(1, "f")),))
    y.backward(enable_double_backprop=again)
    assert node.seen == [again, True, again]
    assert renga.config.enable_backprop


@pytest.mark.parametrize(
    ("name", "values", "of_core"),
    [
        ("train", (False, True), "training"),
        ("use_cudnn", ("never", "always"), "cudnn"),
        ("dtype", ("float32", renga.mixed_bfloat16), "bfloat16_activations"),
    ],
)
def test_the_core_follows(name, values, of_core):
    for config, core in (
        (renga.global_config, _core.process_settings),
        (renga.config, _core.thread_settings),
    ):
        for value, expected in zip(values, (False, True)):
            with renga.using_config(name, value, config):
                assert getattr(core, of_core) is expected
    assert getattr(_core.thread_settings, of_core) is None


@pytest.mark.parametrize("config", [renga.config, renga.global_config])
def test_a_precision_of_no_known_name(config):
    with pytest.raises(ValueError, match="expected highest, high or medium, got low"):
        config.compute_precision = "low"
    assert config.compute_precision == "highest"


def test_every_setting_is_described():
    for name, setting in configuration.declared_settings(renga.global_config).items():
        assert setting.text.endswith("."), name
        assert not setting.values or setting.default in setting.values, name


def test_show(settings):
    common, local = settings
    common.b = 1
    local.long_name = 2
    out = io.StringIO()
    local.show(out)
    assert out.getvalue() == "b         1\nlong_name 2\ntrain     True\n"
    out = io.StringIO()
    common.show(out)
    assert out.getvalue() == "b     1\ntrain True\n"


def test_debug_mode():
    assert not renga.is_debug()
    with renga.DebugMode(True):
        assert renga.is_debug()
        assert not in_a_thread(renga.is_debug)
    assert not renga.is_debug()
    renga.set_debug(True)
    try:
        assert renga.is_debug()
    finally:
        renga.set_debug(False)
    assert renga.get_compute_mode() is None
