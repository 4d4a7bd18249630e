"""Where the sample does not cover the population, and how that is reported."""
