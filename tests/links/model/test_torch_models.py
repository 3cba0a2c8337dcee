"""Networks with weights of PyTorch give the outputs that PyTorch gave.

``cases/torch_models.json`` was written by ``record_torch.py`` with PyTorch 2.13,
torchvision 0.28 and transformers 5.24.
"""

import json
import re
from pathlib import Path

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.serializers import load_torch_state_dict
from tests.catalogue import LINKS
from tests.links.cases import torch_weights
from tests.links.cases.torch_weights import image, state_of, text

save_file = pytest.importorskip("safetensors.numpy").save_file
CASES_FOLDER = Path(torch_weights.__file__).parent
RECORDS = json.loads((CASES_FOLDER / "torch_models.json").read_text())


CASES = {row.name: row.torch for row in LINKS.values() if row.torch}
WITH_OUTPUTS = [name for name, (_, x) in CASES.items() if x is not None]
COUNTS = {row.name: row.count for row in LINKS.values() if row.count}


def saved(tmp_path, state):
    file = tmp_path / "weights.safetensors"
    save_file({n: numpy.ascontiguousarray(v) for n, v in state.items()}, file)
    return file


def test_every_network_is_recorded():
    assert set(RECORDS) == set(CASES)


@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_outputs(name, tmp_path):
    make, x = CASES[name]
    link, record = make(), RECORDS[name]
    load_torch_state_dict(link, saved(tmp_path, state_of(record["shapes"])))
    with renga.using_config("train", False), renga.no_backprop_mode():
        y = link(x).array.ravel()
    found = y[:: max(1, len(y) // 100)]
    numpy.testing.assert_allclose(found, record["outputs"], 1e-4, 1e-4)
    assert numpy.std(found) > 0.1


class Recorder:
    """Takes the names and shapes that a link asks for."""

    def __init__(self, found, path=""):
        self.found, self.path = found, path

    def __getitem__(self, key):
        return Recorder(self.found, f"{self.path}{key}/")

    def __call__(self, key, value):
        self.found.append(numpy.shape(value))
        return value


@pytest.mark.parametrize("name", sorted(CASES.keys() - WITH_OUTPUTS))
def test_shapes_of_others(name):
    found = []
    CASES[name][0]().serialize(Recorder(found))
    expected = map(tuple, RECORDS[name]["shapes"].values())
    assert sorted(found) == sorted(expected)


def gpt(name="GPT2"):
    return CASES[name][0](), state_of(RECORDS[name]["shapes"])


@pytest.mark.parametrize("name", COUNTS)
def test_published_numbers_of_parameters(name, monkeypatch):
    """Only the shapes are made, not half a gigabyte of numbers."""
    shapes = []
    monkeypatch.setattr(
        renga.Parameter, "initialize", lambda param, shape: shapes.append(shape)
    )
    getattr(L, name)()
    assert sum(map(numpy.prod, shapes)) == COUNTS[name]


def outputs_of(name, state, tmp_path, **arguments):
    make, x = CASES[name]
    link = make()
    load_torch_state_dict(link, saved(tmp_path, state))
    with renga.using_config("train", False):
        return link, link(x, **arguments).array


def test_published_files_of_densenets(tmp_path):
    """Their names have dots that torchvision's network does not have."""
    state = state_of(RECORDS["DenseNet"]["shapes"])
    dotted = {
        re.sub(r"(layer\d\.(norm|conv))(\d)", r"\1.\3", n): v for n, v in state.items()
    }
    assert dotted.keys() != state.keys()
    (_, expected), (_, found) = (
        outputs_of("DenseNet", x, tmp_path) for x in (state, dotted)
    )
    numpy.testing.assert_array_equal(found, expected)


def test_published_files_of_bert(tmp_path):
    """They have older names of normalizations, and layers for whole texts."""
    state = state_of(RECORDS["BERT"]["shapes"])
    older = {
        n.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): v
        for n, v in state.items()
    }
    older["bert.pooler.dense.weight"] = numpy.ones((24, 24), "f")
    older["cls.seq_relationship.bias"] = numpy.ones(2, "f")
    older["bert.embeddings.position_ids"] = numpy.arange(16)[None]
    (_, expected), (_, found) = (
        outputs_of("BERT", x, tmp_path) for x in (state, older)
    )
    numpy.testing.assert_array_equal(found, expected)


def test_published_files_of_tied_llamas(tmp_path):
    state = state_of(RECORDS["Llama"]["shapes"])
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    state["model.layers.0.self_attn.rotary_emb.inv_freq"] = numpy.ones(2, "f")
    _, expected = outputs_of("Llama", state, tmp_path)
    tied = L.Llama(50, 24, 2, 6, 40, 2, 50.0, tied=True)
    del state["lm_head.weight"]
    load_torch_state_dict(tied, saved(tmp_path, state))
    numpy.testing.assert_allclose(tied(text(50)).array, expected, 1e-5, 1e-6)


def test_a_part_of_a_projection_is_missing(tmp_path):
    state = state_of(RECORDS["Llama"]["shapes"])
    del state["model.layers.1.self_attn.k_proj.weight"]
    with pytest.raises(KeyError, match="nothing like blocks/1/attention/in_proj/W"):
        outputs_of("Llama", state, tmp_path)


def test_words_of_bert(tmp_path):
    """Padding changes nothing, texts have kinds, and places are asked for."""
    x = text(50)
    link, scores = outputs_of("BERT", state_of(RECORDS["BERT"]["shapes"]), tmp_path)
    with renga.using_config("train", False):
        places = numpy.array([1, 4, 12])
        numpy.testing.assert_allclose(
            link(x, places=places).array, scores.reshape(-1, 50)[places], 1e-4, 1e-5
        )
        padded = numpy.concatenate([x, x[:, :3]], 1)
        found = link(padded, mask=numpy.arange(12)[None] < [[9], [9]])
        numpy.testing.assert_allclose(found.array[:, :9], scores, 1e-4, 1e-5)
        kinds = numpy.zeros_like(x)
        numpy.testing.assert_allclose(link(x, kinds).array, scores, 1e-4, 1e-5)
        kinds[:, 5:] = 1
        assert abs(link(x, kinds).array - scores).max() > 0.01
        x[:, 3] = 7
        x[1, 6] = 7
        scores = link(x).array
        found = link.predict(x, 7)
    expected = numpy.where(x == 7, scores.argmax(2), x)
    numpy.testing.assert_array_equal(found, expected)
    assert (x[:, 3] == 7).all()


def test_names_as_published(tmp_path):
    link, state = gpt()
    state = {f"transformer.{name}": v for name, v in state.items()}
    state["transformer.h.0.attn.bias"] = numpy.ones((1, 1, 16, 16), bool)
    state["lm_head.weight"] = state["transformer.wte.weight"]
    load_torch_state_dict(link, saved(tmp_path, state))
    numpy.testing.assert_array_equal(
        link.blocks[1].up.W.array, state["transformer.h.1.mlp.c_fc.weight"].T
    )


def test_faults_leave_the_link_unchanged(tmp_path):
    link, state = gpt()
    before = {path: p.array.copy() for path, p in link.namedparams()}
    name = "h.1.mlp.c_fc.bias"
    without = {n: v for n, v in state.items() if n != name}
    with pytest.raises(KeyError, match="nothing like blocks/1/up/b"):
        load_torch_state_dict(link, saved(tmp_path, without))
    with pytest.raises(KeyError, match="nothing like other"):
        load_torch_state_dict(link, saved(tmp_path, {**state, "other": state[name]}))
    with pytest.raises(ValueError):
        load_torch_state_dict(link, saved(tmp_path, {**state, name: state[name][1:]}))
    for path, p in link.namedparams():
        numpy.testing.assert_array_equal(p.array, before[path])


def test_layers_of_other_links(tmp_path):
    class Net(renga.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.words = L.EmbedID(5, 4)
                self.layers = renga.Sequential(
                    L.Linear(None, 3), F.relu, L.LayerNormalization(3), L.Linear(3, 2)
                )
                self.norm = L.BatchNormalization(3)

    shapes = {
        "words.weight": (5, 4), "layers.0.weight": (3, 4), "layers.0.bias": (3,),
        "layers.2.weight": (3,), "layers.2.bias": (3,), "norm.weight": (3,),
        "layers.3.weight": (2, 3), "layers.3.bias": (2,),
        "norm.bias": (3,), "norm.running_mean": (3,), "norm.running_var": (3,),
    }  # fmt: skip
    net, state = Net(), state_of(shapes)
    load_torch_state_dict(net, saved(tmp_path, state))
    numpy.testing.assert_array_equal(net.layers[0].W.array, state["layers.0.weight"])
    numpy.testing.assert_array_equal(net.layers[2].beta.array, state["layers.2.bias"])
    numpy.testing.assert_array_equal(net.layers[3].b.array, state["layers.3.bias"])
    numpy.testing.assert_array_equal(net.norm.avg_var, state["norm.running_var"])
    # Files of today count the batches.
    state["norm.num_batches_tracked"] = numpy.array(7)
    load_torch_state_dict(net, saved(tmp_path, state))
    assert net.norm.N == 7


@pytest.mark.parametrize("name", ["GPT2", "Llama"])
def test_generated_text_follows_the_probabilities(name):
    link, _ = gpt(name)
    start = text(50)
    numpy.random.seed(0)
    likeliest = link.generate(start, 5, temperature=1e-6)
    assert likeliest.shape == (2, 14) and (likeliest[:, :9] == start).all()
    with renga.using_config("train", False):
        for k in range(9, 14):
            scores = link(likeliest[:, :k]).array[:, -1]
            assert (likeliest[:, k] == scores.argmax(1)).all()
    with pytest.raises(ValueError, match=f"{name}: expected a temperature above 0"):
        link.generate(start, 1, temperature=0)


def test_too_long_texts():
    with pytest.raises(ValueError, match="16 tokens at most"):
        gpt()[0].generate(text(50), 9)


def test_drawn_tokens():
    from renga.links.model.language.language_model import _drawn

    p = numpy.tile(numpy.float32([0.2, 0, 0.5, 0.3]), (20000, 1))
    numpy.random.seed(0)
    counts = numpy.bincount(_drawn(p), minlength=4) / len(p)
    numpy.testing.assert_allclose(counts, p[0], atol=0.015)


def test_images_of_other_sizes():
    with pytest.raises(renga.utils.type_check.InvalidType, match="32 × 32"):
        CASES["VisionTransformer"][0]()(image(40))
    with pytest.raises(ValueError, match="divide the image"):
        L.VisionTransformer(32, 7, 1, 1, 8, 8)


rng = numpy.random.default_rng(0)


class Tied(renga.Chain):
    """A weight with two names, and a link with two names."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.words = L.EmbedID(5, 4)
            self.out = L.Linear(4, 5)
            self.first = L.BatchNormalization(4)
            self.second = self.first
        with self.out.init_scope():
            self.out.W = self.words.W


def state_of_tied(words, norm):
    return {
        f"{words}.weight": rng.normal(size=(5, 4)).astype("f"),
        "out.bias": rng.normal(size=5).astype("f"),
        **{
            f"{norm}.{name}": rng.normal(size=4).astype("f")
            for name in ("weight", "bias", "running_mean", "running_var")
        },
        f"{norm}.num_batches_tracked": numpy.array(3),
    }


@pytest.mark.parametrize("words", ["words", "out"])
@pytest.mark.parametrize("norm", ["first", "second"])
def test_a_tied_weight_needs_one_of_its_names(tmp_path, words, norm):
    state = state_of_tied(words, norm)
    link = Tied()
    load_torch_state_dict(link, saved(tmp_path, state))
    assert link.out.W is link.words.W and link.first is link.second
    numpy.testing.assert_array_equal(link.words.W.array, state[f"{words}.weight"])
    mean = state[f"{norm}.running_mean"]
    numpy.testing.assert_array_equal(link.second.avg_mean, mean)


def test_different_values_of_a_tied_weight_are_refused(tmp_path):
    state = state_of_tied("words", "first")
    equal = {**state, "out.weight": state["words.weight"].copy()}
    link = Tied()
    load_torch_state_dict(link, saved(tmp_path, equal))
    before = link.words.W.array.copy()
    other = {**state, "out.weight": state["words.weight"] + 1}
    with pytest.raises(ValueError, match="one array for out/W and words/W.* are tied"):
        load_torch_state_dict(link, saved(tmp_path, other))
    numpy.testing.assert_array_equal(link.words.W.array, before)


@pytest.mark.parametrize(
    ("prefix", "hint"),
    [
        ("module", r"DistributedDataParallel adds: save model\.module\.state_dict"),
        ("_orig_mod", r"torch\.compile adds: save model\._orig_mod\.state_dict"),
    ],
)
def test_prefixes_of_wrappers_are_named(tmp_path, prefix, hint):
    state = {f"{prefix}.weight": numpy.ones((2, 3), "f")}
    with pytest.raises(KeyError, match=hint):
        load_torch_state_dict(L.Linear(3, 2, nobias=True), saved(tmp_path, state))


@pytest.mark.parametrize("first", [b"PK\x03\x04", b"\x80\x02\x8a\nl\xfc\x9cF\xf9"])
def test_files_of_torch_save_are_named(tmp_path, first):
    path = tmp_path / "weights.pt"
    path.write_bytes(first + bytes(100))
    with pytest.raises(ValueError, match=r"torch\.save.*safetensors\.torch\.save_file"):
        load_torch_state_dict(L.Linear(3, 2), path)
