"""Links that lie on several ranks and compute what the serial ones compute."""
