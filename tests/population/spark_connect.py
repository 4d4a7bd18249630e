"""What a client of Spark Connect sees; run by test_spark.py, for a JVM serves one kind of session.

The server is the one that comes with the pip package.
"""

import os
import sys

import numpy as np
import pandas as pd
from sklearn.cluster import BisectingKMeans

from unskew import ClusterWeights, TreeWeights
from unskew.errors import InputError


def main():
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "localhost")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": random.normal(size=2000).round(1), "town": random.choice(["x", "y"], 2000)}
    )
    sample, labels = frame.iloc[:300], random.normal(size=300)
    population = spark.createDataFrame(frame).repartition(3)
    assert type(population).__module__.startswith("pyspark.sql.connect")
    weighter = TreeWeights(min_samples_leaf=10)
    expected = weighter.fit(sample, labels, population=frame).weights_.copy()
    found = weighter.fit(sample, labels, population=population).weights_
    assert np.array_equal(found, expected)
    weighed = weighter.weigh(population).toArrow().to_pandas()
    assert np.array_equal(weighed["weight"], weighter.weigh(weighed[["a", "town"]]))
    clusters = ClusterWeights(BisectingKMeans(3, random_state=0))
    local = clusters.fit(sample, population=frame).weights_.copy()
    assert np.array_equal(clusters.fit(sample, population=population).weights_, local)
    try:
        TreeWeights().fit(
            sample, labels, population=population.selectExpr("double('inf') a", "town")
        )
    except InputError as error:
        refused = str(error)
    assert "Column 'a' of the population holds inf" in refused
    print("same weights, same column of weights", flush=True)
    spark.stop()


if __name__ == "__main__":  # not where pytest looks for doctests
    main()
