"""Options that are not numbers or not valid sizes are refused."""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType

x = numpy.ones((2, 3))
state = x[None]
images, labels = numpy.ones((1, 2, 3, 3)), numpy.zeros((1, 3, 3), "i")


# Calls with an option that is a number, by the function's name and the option's.
NUMBERS = {
    "batch_renormalization: rmax": lambda v: renormalized(rmax=v),
    "batch_renormalization: dmax": lambda v: renormalized(dmax=v),
    "batch_renormalization: eps": lambda v: renormalized(eps=v),
    "batch_renormalization: decay": lambda v: renormalized(decay=v),
    "clip: x_min": lambda v: F.clip(x, v, 1),
    "clip: x_max": lambda v: F.clip(x, 0, v),
    "clipped_relu: z": lambda v: F.clipped_relu(x, v),
    "decorrelated_batch_normalization: eps": lambda v: decorrelated(eps=v),
    "decorrelated_batch_normalization: decay": lambda v: decorrelated(decay=v),
    "discriminative_margin_based_clustering_loss: delta_v": lambda v: clustered(v, 1),
    "discriminative_margin_based_clustering_loss: delta_d": lambda v: clustered(1, v),
    "discriminative_margin_based_clustering_loss: alpha": lambda v: clustered(alpha=v),
    "discriminative_margin_based_clustering_loss: beta": lambda v: clustered(beta=v),
    "discriminative_margin_based_clustering_loss: gamma": lambda v: clustered(gamma=v),
    "dropout: ratio": lambda v: F.dropout(x, v),
    "gumbel_softmax: tau": lambda v: F.gumbel_softmax(x, v),
    "huber_loss: delta": lambda v: F.huber_loss(x, x, v),
    "label_smoothing_cross_entropy: epsilon": lambda v: F.label_smoothing_cross_entropy(
        x, labels[0, :2, 0], v
    ),
    "local_response_normalization: k": lambda v: F.local_response_normalization(x, k=v),
    "local_response_normalization: alpha": lambda v: F.local_response_normalization(
        x, alpha=v
    ),
    "local_response_normalization: beta": lambda v: F.local_response_normalization(
        x, beta=v
    ),
    "pad_sequence: padding": lambda v: F.pad_sequence([x, x[:1]], padding=v),
    "rotary_embedding: base": lambda v: F.rotary_embedding(images[..., :2], base=v),
    "rrelu: l": lambda v: F.rrelu(x, v, 0.5),
    "rrelu: u": lambda v: F.rrelu(x, 0.1, v),
    "selu: alpha": lambda v: F.selu(x, v),
    "selu: scale": lambda v: F.selu(x, 1, v),
    "simplified_dropconnect: ratio": lambda v: F.simplified_dropconnect(x, x, None, v),
    "zoneout: ratio": lambda v: F.zoneout(x, x, v),
}
INTEGERS = {
    "n_step_gru: n_layers": lambda v: F.n_step_gru(v, 0.0, state, [], [], [x]),
    "n_step_lstm: n_layers": lambda v: F.n_step_lstm(v, 0, state, state, [], [], [x]),
    "n_step_rnn: n_layers": lambda v: F.n_step_rnn(v, 0.0, state, [], [], [x]),
    "position_embedding: position": lambda v: F.position_embedding(x, x, v),
    "rotary_embedding: position": lambda v: F.rotary_embedding(images[..., :2], v),
    "rotary_embedding: step": lambda v: F.rotary_embedding(images[..., :2], step=v),
}


def renormalized(rmax=1.0, dmax=0.0, **options):
    averages = numpy.zeros(3), numpy.ones(3)
    options |= dict(running_mean=averages[0], running_var=averages[1])
    return F.batch_renormalization(x, x[0], x[0], rmax, dmax, **options)


def decorrelated(**options):
    return F.decorrelated_batch_normalization(x, groups=1, **options)


def clustered(delta_v=0.5, delta_d=1.5, **options):
    return F.discriminative_margin_based_clustering_loss(
        images, labels, delta_v, delta_d, 2, **options
    )


WRONG = ["1", b"1", None, 1j, [1.0, 2.0], numpy.ones(2), object()]


@pytest.mark.parametrize("name", NUMBERS)
def test_an_option_is_a_number(name):
    function, option = name.split(": ")
    NUMBERS[name](numpy.float32(0.25))
    for value in WRONG:
        if value is not None or function != "clip":  # where it means no limit
            message = f"{function}: expected a number as {option}, got "
            with pytest.raises(TypeError, match=message):
                NUMBERS[name](value)


@pytest.mark.parametrize("name", INTEGERS)
def test_an_option_is_an_integer(name):
    function, option = name.split(": ")
    for value in [*WRONG, 1.5]:
        message = f"{function}: expected an integer as {option}, got "
        with pytest.raises(TypeError, match=message):
            INTEGERS[name](value)


def test_recurrent_layers_take_a_step_or_more():
    with pytest.raises(InvalidType, match="n_step_rnn: expected one step or more"):
        F.n_step_rnn(0, 0.0, state, [], [], [])


def test_sequences_are_padded_with_any_number():
    y = F.pad_sequence([x, x[:1]], padding=float("nan"))
    assert numpy.isnan(y.array[1, 1]).all() and (y.array[0] == 1).all()


@pytest.mark.parametrize(
    ("k", "error"), [(0, ValueError), (-1, ValueError), (None, TypeError)]
)
def test_there_is_an_instance_at_least(k, error):
    with pytest.raises(error):
        F.discriminative_margin_based_clustering_loss(images, labels, 0.5, 1.5, k)


def test_repeating_an_empty_array_zero_times():
    y = F.repeat(numpy.ones((2, 0, 3)), (), axis=1)
    assert y.shape == (2, 0, 3)
