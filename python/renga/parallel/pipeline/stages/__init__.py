"""The stages of a rank: their parameters, passes and messages."""
