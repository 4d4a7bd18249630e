"""Pure array functions, one topic a file: no estimator, no dataframe."""
