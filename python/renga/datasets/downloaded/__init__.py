"""Data sets that are downloaded once and cached."""
