"""Models whose images lie on several ranks in parts."""
