"""Detection on images that are drawn."""


def test_shapes_are_found_where_they_are(run_offline):
    done = run_offline("14_detection/train_shapes.py")
    words = done.lines[-1].split()
    precision, recall = float(words[1]), float(words[5])
    assert precision > 0.9
    assert recall > 0.85
