"""Normalization of samples, groups and neighbours."""
