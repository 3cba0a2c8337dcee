"""Files that training goes on from."""
