"""What a model computes, recorded by running it once."""

from renga.program.program import Call, LinkCall, Program, Value, values_in
from renga.program.recording import Recorder, record

__all__ = ["Call", "LinkCall", "Program", "Recorder", "Value", "record", "values_in"]
