"""How HeckmanRegressor and HeckmanClassifier behave on simulated data."""
