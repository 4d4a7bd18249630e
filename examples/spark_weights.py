"""Train a Spark ML learner on a biased sample with weights, all of it on Spark.

    pip install 'unskew[spark]'
    python examples/spark_weights.py

The customers who answered a survey (the sample) do not represent all customers (the population):
young customers answer more often. Spending depends on age, so a model trained on the unweighted
answers predicts a biased mean for all customers. Weights correct the bias.
"""

from __future__ import annotations

import os
import sys

from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import LinearRegression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import avg

from unskew import SparkSample, TreeWeights


def customers(spark: SparkSession, n_rows: int) -> DataFrame:
    """Return simulated customers: age and region, spending, and whether they answer."""
    drawn = spark.range(n_rows).selectExpr(
        "18 + 62 * rand(1) as age",
        "if(rand(2) < 0.3, 'north', 'south') as region",
        "randn(3) as noise",
        "rand(4) as luck",
    )
    return drawn.selectExpr(
        "age",
        "region",
        "0.04 * pow(age - 35, 2) + if(region = 'north', 10, 0) + noise as spending",
        "luck < 1 / (1 + exp((age - 30) / 8)) as answered",
    )


def main(n_rows: int = 200_000) -> dict[str, float]:
    """Print and return the error on all customers, with and without weights."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    everyone = customers(spark, n_rows).cache()
    sample = everyone.where("answered").select("age", "region", "spending")
    population = everyone.select("age", "region")

    # The tree is grown on at most 20,000 answers; its leaves are counted over all rows.
    weighter = TreeWeights(min_samples_leaf=50)
    weighter.fit(SparkSample(sample, subsample=20_000), "spending", population=population)
    weighted = weighter.weigh(sample, name="weight")  # a lazy column, computed on the executors

    assembler = VectorAssembler(inputCols=["age"], outputCol="features")
    train, test = assembler.transform(weighted), assembler.transform(everyone)
    judge = RegressionEvaluator(labelCol="spending", metricName="rmse")
    learner = LinearRegression(labelCol="spending")
    errors = {
        "without weights": judge.evaluate(learner.fit(train).transform(test)),
        "with weights": judge.evaluate(learner.setWeightCol("weight").fit(train).transform(test)),
    }
    truth = everyone.agg(avg("spending")).first()[0]
    answers = weighted.selectExpr("avg(spending)", "sum(weight * spending) / sum(weight)").first()
    print(f"mean spending: {truth:.2f}; mean of the answers: {answers[0]:.2f}, ", end="")
    print(f"weighted {answers[1]:.2f}")
    for name, error in errors.items():
        print(f"RMSE of a linear regression on all customers, {name}: {error:.2f}")
    return errors


if __name__ == "__main__":
    main()
