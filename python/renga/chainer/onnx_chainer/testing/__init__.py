"""What tests of exported models need: inputs, files, and the runtime's outputs."""
