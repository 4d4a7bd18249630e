"""How often conformal intervals and sets cover the population's labels."""
