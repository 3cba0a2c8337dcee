"""What has to be equal on all ranks: parameters, states and settings."""
