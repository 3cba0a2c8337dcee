"""Links that connect every input to every output, and what is made of them."""
