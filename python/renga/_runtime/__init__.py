"""What serves the process: its memory, seeds, kernels, versions and checks."""
