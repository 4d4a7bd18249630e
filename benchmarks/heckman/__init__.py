"""How HeckmanRegressor behaves on simulated data."""
