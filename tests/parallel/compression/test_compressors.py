"""What compressors send and keep back, against NumPy and their papers' bounds."""

import types

import numpy as np
import pytest

from renga.distributed import compression
from renga.distributed.compression import State
from renga.parallel.compression.compressor import PackedPayloads, sum_of_payloads
from tests.parallel.compression.nodes import Identity, gradient, on_nodes

SPARSE = [compression.TopK(0.07), compression.RandomK(0.07)]
GATHERED = [
    *SPARSE,
    compression.OneBit(),
    compression.QSGD(2),
    compression.QSGD(4),
    compression.QSGD(8),
    compression.TernGrad(),
    compression.DGC(0.07),
    Identity(),
]


def state(node=0, nodes=1):
    return State("/l/W", node, nodes)


def decoded(compressor, payload, x):
    y = np.full_like(x, 7)
    compressor.decode(payload, y)
    return y


@pytest.mark.parametrize("compressor", [*SPARSE, compression.OneBit()], ids=repr)
def test_what_is_sent_and_kept_is_what_came(compressor):
    s = state()
    residual = np.zeros((40, 30), "float32")
    for step in range(5):
        total = residual + gradient(step)
        payload = compressor.compress(gradient(step), s)
        s.count_step()
        sent, residual = decoded(compressor, payload, total), s["residual"].copy()
        if compressor in SPARSE:
            np.testing.assert_array_equal(sent + residual, total)
            assert ((sent == 0) | (residual == 0)).all()
        else:
            np.testing.assert_allclose(sent + residual, total, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1, 7, 1200, 40_000, 100_003])
def test_top_k_takes_the_largest(size):
    x = gradient(0, (size,)).round(1)  # with many equal magnitudes
    count = max(1, int(0.03 * size))
    expected = np.sort(np.argsort(-np.abs(x), kind="stable")[:count])
    indices, values = compression.TopK(0.03).encode(x, state())
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, x[expected])


def test_top_k_of_magnitudes_that_a_sample_does_not_show():
    x = np.zeros(100_000, "float32")
    places = np.arange(50_001, 50_101)
    x[places] = np.linspace(-1, 1, 100)
    indices, values = compression.TopK(0.001).encode(x, state())
    np.testing.assert_array_equal(indices, places)
    np.testing.assert_array_equal(values, x[places])


def test_random_k_draws_every_element_equally_often():
    x, counts = np.ones(60, "float32"), np.zeros(60)
    s, compressor = state(), compression.RandomK(0.2)
    for _ in range(3000):
        counts += decoded(compressor, compressor.encode(x, s), x)
        s.count_step()
    assert counts.sum() == 3000 * 12
    # 600 expected, standard deviation 22.
    assert np.abs(counts - 600).max() < 5 * 22


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_quantization_is_unbiased_within_its_variance(bits):
    x = gradient(3, (700,))
    compressor = compression.TernGrad() if bits == 2 else compression.QSGD(bits)
    s, draws = state(), []
    for _ in range(2000):
        draws.append(decoded(compressor, compressor.encode(x, s), x))
        s.count_step()
    draws = np.array(draws, "float64")
    levels = 2 ** (bits - 1) - 1
    for block in (slice(0, 512), slice(512, 700)):
        v = x[block].astype("float64")
        unit = np.abs(v).max() / levels
        np.testing.assert_allclose(
            draws[:, block] / unit, (draws[:, block] / unit).round(), atol=1e-4
        )
        fraction = np.abs(v) / unit % 1
        exact = unit**2 * fraction * (1 - fraction)
        variance = draws[:, block].var(0).sum()
        assert abs(variance / exact.sum() - 1) < 0.1
        bound = min(v.size / levels**2, np.sqrt(v.size) / levels) * (v**2).sum()
        assert variance <= bound
        # Five standard deviations; an element that is hardly ever rounded up may be so
        # three times.
        error = np.abs(draws[:, block].mean(0) - v)
        assert (error <= 5 * np.sqrt(exact / 2000) + 3 * unit / 2000).all()


@pytest.mark.parametrize("size", [1, 9, 4096, 5003])
def test_one_bit_sends_the_means_of_signs(size):
    x = gradient(4, (size,))
    sent = decoded(compression.OneBit(), compression.OneBit().encode(x, state()), x)
    expected = np.empty(size)
    for begin in range(0, size, 4096):
        v = x[begin : begin + 4096].astype("float64")
        for mask in (v < 0, v >= 0):
            if mask.any():
                expected[begin : begin + 4096][mask] = v[mask].mean()
    np.testing.assert_allclose(sent, expected, rtol=1e-5)


def test_deep_gradient_compression_follows_its_paper():
    compressor = compression.DGC(0.1, momentum=0.8, clip=0.5)
    u, v, s = np.zeros(200), np.zeros(200), state(nodes=4)
    for step in range(6):
        g = gradient(step, (200,)).astype("float64")
        g *= min(1, 0.5 / np.sqrt(4) / np.linalg.norm(g))
        u = 0.8 * u + g
        v = v + u
        taken = np.sort(np.argsort(-np.abs(v), kind="stable")[:20])
        indices, values = compressor.compress(gradient(step, (200,)), s)
        s.count_step()
        np.testing.assert_array_equal(indices, taken)
        np.testing.assert_allclose(values, v[taken], rtol=1e-5)
        u[taken] = v[taken] = 0


def test_the_warm_up_of_deep_gradient_compression():
    compressor, s, counts = compression.DGC(0.01, warmup_steps=2), state(), []
    for _ in range(10):
        counts.append(compressor.compress(gradient(0, (1000,)), s)[0].size)
        s.count_step()
    assert counts == [250, 250, 63, 63, 15, 15, 10, 10, 10, 10]


@pytest.mark.parametrize("nodes", range(1, 9))
def test_sums_are_made_in_the_order_of_an_all_reduce(nodes):
    from renga.communicators import local

    x = [gradient(i, (50,)) for i in range(nodes)]
    y = np.empty(50, "float32")
    sum_of_payloads(Identity(), [[v] for v in x], y)
    expected = local.run(lambda comm: comm.all_reduce(x[comm.rank]), ranks=nodes)
    np.testing.assert_array_equal(y, expected[0])


class FullRank(compression.PowerSGD):
    def pays(self, x):
        return True


def test_power_sgd_of_full_rank_is_the_mean(ranks):
    def run(comm):
        comm = on_nodes(comm)
        x = gradient(comm.rank, (12, 20)).copy()
        kept = State("/l/W", comm.rank, comm.size)
        FullRank(12).reduce([x], [kept], comm).wait()
        return x, kept["residual"]

    results = ranks(run)
    total = sum(gradient(r, (12, 20)).astype("float64") for r in range(len(results)))
    for x, residual in results:
        np.testing.assert_array_equal(x, results[0][0])
        np.testing.assert_allclose(x, total, rtol=0, atol=1e-5 * np.abs(total).max())
        np.testing.assert_allclose(residual, 0, rtol=0, atol=1e-4)


def test_power_sgd_sends_and_keeps_all_of_the_gradients(ranks):
    def run(comm):
        comm = on_nodes(comm)
        kept, sent = State("/l/W", comm.rank, comm.size), 0
        bias = State("/l/b", comm.rank, comm.size)
        for step in range(4):
            x = gradient(10 * comm.rank + step).copy()
            b = gradient(step, (30,)).copy()
            compression.PowerSGD(3).reduce([x, b], [kept, bias], comm).wait()
            sent = sent + x
            assert np.linalg.matrix_rank(x) <= 3
            np.testing.assert_array_equal(b, comm.all_reduce(gradient(step, (30,))))
        return sent, kept["residual"]

    results = ranks(run)
    total = sum(
        gradient(10 * r + step).astype("float64")
        for r in range(len(results))
        for step in range(4)
    )
    received = results[0][0] + sum(residual for _, residual in results)
    np.testing.assert_allclose(received, total, rtol=0, atol=1e-4 * np.abs(total).max())


@pytest.mark.parametrize("compressor", GATHERED, ids=repr)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (513,), (64, 65)])
def test_zeros_and_shapes(compressor, shape):
    s = state()
    for _ in range(2):
        payload = compressor.compress(np.zeros(shape, "float32"), s)
        message = PackedPayloads([payload, payload])
        again = message.unpack(message.bytes)[1]
        y = decoded(compressor, again, np.zeros(shape, "float32"))
        np.testing.assert_array_equal(y, np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("compressor", GATHERED, ids=repr)
def test_gradients_that_are_not_finite(compressor, bad):
    s = state()
    compressor.compress(gradient(0), s)
    before = {key: x.copy() for key, x in s.items()}
    x = gradient(1).copy()
    x[3, 5] = bad
    y = decoded(compressor, compressor.compress(x, s), x)
    assert not np.isfinite(y).all()
    for key, value in before.items():
        np.testing.assert_array_equal(s[key], value)


@pytest.mark.parametrize("compressor", GATHERED, ids=repr)
def test_elements_that_are_nearly_zero(compressor):
    x = np.full(600, 1e-42, "float32")
    y = decoded(compressor, compressor.encode(x, state()), x)
    assert (np.abs(y) <= 2e-42).all()


@pytest.mark.parametrize(
    "compressor", [c for c in GATHERED if c.error_feedback], ids=repr
)
def test_huge_gradients_leave_what_is_kept_finite(compressor):
    s = state()
    for scale in (1.0, 1e29, 3e38, 1.0):
        compressor.compress(np.full((70, 90), scale, "float32"), s)
    assert all(np.isfinite(x).all() for x in s.values())


def test_invalid_options():
    for kind in (compression.TopK, compression.RandomK, compression.DGC):
        with pytest.raises(ValueError, match="expected a ratio"):
            kind(0)
        with pytest.raises(TypeError, match="expected a number"):
            kind("1%")
    with pytest.raises(ValueError, match="bits: expected 2, 4 or 8, got 3"):
        compression.QSGD(bits=3)
    with pytest.raises(TypeError, match="bits: expected an integer, got 4.0"):
        compression.QSGD(bits=4.0)
    for clip in (0, -1.0):
        with pytest.raises(ValueError, match="expected a clip above 0"):
            compression.DGC(clip=clip)
    with pytest.raises(ValueError, match="expected a dtype"):
        compression.Cast("int8")
    with pytest.raises(ValueError, match="expected at least 1"):
        compression.PowerSGD(0)


@pytest.mark.parametrize("kind", [np.ndarray, type(None), types.GeneratorType, list])
@pytest.mark.parametrize("feedback", [False, True])
def test_payloads_that_are_no_arrays(kind, feedback):
    class Wrong(Identity):
        error_feedback = feedback

        def encode(self, x, state):
            payloads = [x, None, (y for y in [x]), [1.0]]
            return next(p for p in payloads if isinstance(p, kind))

    with pytest.raises(TypeError, match="expected a list or tuple of arrays"):
        PackedPayloads([Wrong().compress(gradient(0), state())])
