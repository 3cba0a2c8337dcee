"""Transports: how the bytes of a communicator get from one rank to another."""
