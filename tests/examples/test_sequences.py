"""The course on sequences, on Python's documentation and on generated data."""

import numpy


def number_at_the_end(line):
    return float(line.split()[-1])


def test_a_language_model_beats_word_frequencies(run_offline):
    options = ["--size", 30000, "--epoch", 3, "--unit", 64]
    options += ["--batchsize", 10, "--bpttlen", 20]
    done = run_offline("06_sequences/train_language_model.py", *options)
    said = "The Penn Treebank is not at hand: taking Python's documentation instead"
    assert said in done.lines
    alone = number_at_the_end(done.lines[-1])
    # A text of words that are all as frequent has as many as the vocabulary.
    assert 100 < alone < 2000
    assert done.log[-1]["validation/main/perplexity"] < 0.92 * alone
    loss = done.log[-1]["validation/main/loss"]
    assert numpy.isclose(
        done.log[-1]["validation/main/perplexity"], numpy.exp(loss), rtol=1e-6
    )


def test_a_word_is_predicted_from_its_context(run_offline, tmp_path):
    for model, epochs in (("skipgram", 2), ("cbow", 2)):
        options = ["--model", model, "--epoch", epochs]
        done = run_offline("06_sequences/train_word2vec.py", *options)
        (line,) = (x for x in done.lines if x.startswith("loss by what is known"))
        # Without training, the loss is six times log 2.
        assert 1 < number_at_the_end(line) < 6 * numpy.log(2)
        assert done.log[-1]["validation/main/loss"] < number_at_the_end(line) - 0.05
        with numpy.load(tmp_path / "words.npz") as vectors:
            assert vectors["W"].shape == (len(vectors["words"]), 64)


def test_dates_are_rewritten(run_offline):
    options = ["--size", 1600, "--epoch", 3, "--unit", 64]
    done = run_offline("06_sequences/train_seq2seq.py", *options)
    # "1950-01-01" to "2049-12-31", and the end: the most frequent letter of
    # each position is right for (1/2, 1/2, 1/10, 1/10, 1, 3/4, 1/6, 1, 1/3, 1/10, 1).
    assert done.log[-1]["main/letters"] > 0.65
    assert 0 <= done.log[-1]["right"] <= 1
    assert all("->" in line for line in done.lines[-6:])


def test_a_memory_network_answers_questions(run_offline):
    options = ["--size", 1600, "--epoch", 8, "--batchsize", 32]
    done = run_offline("06_sequences/train_memory_network.py", *options)
    last = number_at_the_end(done.lines[-1])
    assert 1 / 6 < last < 0.6
    assert done.log[-1]["validation/main/accuracy"] > last + 0.2
