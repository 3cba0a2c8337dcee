"""What a model computes, recorded by running it once."""

from renga.program.program import Call, LinkCall, Program, Value, values_in
from renga.program.recording import Recorder, is_recording, record

__all__ = [
    "Call",
    "LinkCall",
    "Program",
    "Recorder",
    "Value",
    "is_recording",
    "record",
    "values_in",
]
