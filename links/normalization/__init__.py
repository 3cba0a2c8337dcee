"""Links that normalize, with scales and shifts to train."""
