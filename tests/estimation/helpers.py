"""What several tests of estimates share."""

from unskew import CalibrationWeights

QUIET = {"overlap": "ignore"}
MEANS = CalibrationWeights(features="means", columns="shared", **QUIET)


def dummies(learner):
    """A learner on indicators of categories, but for the first of each column."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    return make_pipeline(OneHotEncoder(drop="first", sparse_output=False), learner)
