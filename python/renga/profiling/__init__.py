"""Where time, memory and floating-point operations of a model go."""
