"""Numbers of the population, with intervals."""
