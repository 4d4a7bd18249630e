"""Other readings of what the paper leaves open."""
