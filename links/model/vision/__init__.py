"""Image classifiers, and their published weights."""
