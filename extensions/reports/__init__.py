"""What is observed, and how it is shown."""
