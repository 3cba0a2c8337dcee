"""Complete networks: the Classifier, image models and language models."""
