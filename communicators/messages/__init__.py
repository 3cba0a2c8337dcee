"""How arrays and objects are encoded in messages."""
