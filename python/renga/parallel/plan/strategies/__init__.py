"""Strategies that parallel links execute: what they take, and their space."""
