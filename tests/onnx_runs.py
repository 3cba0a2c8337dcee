"""Graphs of ONNX, computed by ONNX Runtime."""

import pytest

onnxruntime = pytest.importorskip("onnxruntime")


def session_of(proto):
    """A session of one thread: others would spin while nothing is computed."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    text = proto.SerializeToString()
    return onnxruntime.InferenceSession(text, options, providers)


def computed(proto, *arrays):
    """The results for arrays, in the order of the graph's inputs."""
    session = session_of(proto)
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays)))
