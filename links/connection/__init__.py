"""Fully connected layers, and blocks composed of layers."""
