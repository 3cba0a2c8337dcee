"""The course on transformers, on Python's documentation and on digits."""

import numpy


def test_a_gpt_learns_letters_and_writes(run_offline, tmp_path):
    options = ["--iteration", 100, "--unit", 48, "--layer", 2, "--batchsize", 8]
    options += ["--prompt", "The ", "--length", 20]
    done = run_offline("11_transformers/train_gpt.py", *options)
    alone = next(line for line in done.lines if line.startswith("perplexity by"))
    found = [entry["validation/main/perplexity"] for entry in done.log]
    # Without training, all letters are as likely: about a hundred.
    assert found[-1] < 0.95 * float(alone.split()[-1]) < found[0]
    text = "\n".join(done.lines[done.lines.index(alone) + 1 :])
    assert text.startswith("The ") and len(text) == 24
    with numpy.load(tmp_path / "gpt.npz") as arrays:
        assert arrays["tokens/W"].shape[1] == 48


def test_images_are_classified(run_offline):
    for model in ("vit", "resnet"):
        options = ["--model", model, "--epoch", 2]
        done = run_offline("11_transformers/train_images.py", *options)
        # Chance alone is right for one of ten.
        assert done.log[-1]["validation/main/accuracy"] > 0.5
        assert done.log[-1]["main/loss"] < done.log[0]["main/loss"]
