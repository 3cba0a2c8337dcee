"""Steps and layers of recurrent networks."""
