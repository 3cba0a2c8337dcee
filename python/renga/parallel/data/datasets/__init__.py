"""Data sets scattered over ranks, and parts of images."""
