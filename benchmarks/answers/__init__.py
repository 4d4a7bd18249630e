"""Whether an earlier revision gives the same answers."""
