"""Networks that are written once, and timed with renga and with PyTorch."""
