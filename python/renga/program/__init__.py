"""What a model computes, recorded by running it once."""

from renga.program.program import (
    Call as Call,
    LinkCall as LinkCall,
    Program as Program,
    Value as Value,
    values_in as values_in,
)
from renga.program.recording import (
    Recorder as Recorder,
    is_recording as is_recording,
    record as record,
)
