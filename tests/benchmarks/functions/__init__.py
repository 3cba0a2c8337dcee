"""How fast each function is, beside a copy of as many bytes or a product."""
