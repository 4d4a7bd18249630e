"""How much a pass over the population costs, against a bare scan of the same columns."""
