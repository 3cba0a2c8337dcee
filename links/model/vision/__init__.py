"""Models of photographs, and what their weights are loaded from."""
