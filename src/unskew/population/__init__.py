"""The population, its margins, and the one-pass summaries of them."""
