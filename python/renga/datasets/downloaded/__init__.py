"""Data sets that are fetched from their authors once, and kept."""
