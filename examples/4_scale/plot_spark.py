"""
Train a Spark ML learner with weights
=====================================

Sample and population are Spark DataFrames, and so is the result: a column of weights that Spark
ML's ``weightCol`` takes. Young customers answer a survey more often, and spending depends on age.
Needs ``pip install 'unskew[spark]'`` and Java.
"""

# %%
import os
import sys

import matplotlib.pyplot as plt
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import LinearRegression
from pyspark.sql import SparkSession
from pyspark.sql.functions import avg

from unskew import SparkSample, TreeWeights

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")

# %%
# Simulated customers: age and region, spending, and whether they answer.
drawn = spark.range(50_000).selectExpr(
    "18 + 62 * rand(1) as age",
    "if(rand(2) < 0.3, 'north', 'south') as region",
    "randn(3) as noise",
    "rand(4) as luck",
)
everyone = drawn.selectExpr(
    "age",
    "region",
    "0.04 * pow(age - 35, 2) + if(region = 'north', 10, 0) + noise as spending",
    "luck < 1 / (1 + exp((age - 30) / 8)) as answered",
).cache()
sample = everyone.where("answered").select("age", "region", "spending")
population = everyone.select("age", "region")

# %%
# The tree is grown on at most 10,000 answers; its leaves are counted over all rows.
weighter = TreeWeights(min_samples_leaf=50)
weighter.fit(SparkSample(sample, subsample=10_000), "spending", population=population)
weighted = weighter.weigh(sample, name="weight")  # a lazy column

# %%
# The same learner, without and with the weights, judged on all customers.
assembler = VectorAssembler(inputCols=["age"], outputCol="features")
train, test = assembler.transform(weighted), assembler.transform(everyone)
judge = RegressionEvaluator(labelCol="spending", metricName="rmse")
learner = LinearRegression(labelCol="spending")
errors = {
    "without weights": judge.evaluate(learner.fit(train).transform(test)),
    "with weights": judge.evaluate(learner.setWeightCol("weight").fit(train).transform(test)),
}
truth = everyone.agg(avg("spending")).first()[0]
plain, corrected = weighted.selectExpr(
    "avg(spending)", "sum(weight * spending) / sum(weight)"
).first()
print(f"mean spending {truth:.2f}; of the answers {plain:.2f}, weighted {corrected:.2f}")

# %%
figure, axes = plt.subplots(figsize=(6, 2.8), layout="constrained")
axes.bar(errors.keys(), errors.values(), 0.5, color=["#c1440e", "#1b6ca8"])
axes.set(ylabel="RMSE on all customers", title="A linear regression of spending on age")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
spark.stop()
