"""Parallel links: on several ranks they compute what the serial links compute."""
