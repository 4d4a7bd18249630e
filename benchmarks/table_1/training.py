"""How near the SVR on a factor of the kernel is to the optimum on cal-housing, and LIBSVM.

    python -m benchmarks.table_1.training --data DIR

One draw of the table (seed 0, the first w) with Ideal's weights. LIBSVM at a tolerance of 1e-5
stands for the optimum. It writes docs/table-1/training.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVR

from unskew.paper.datasets import load
from unskew.paper.learners import RANK_TOLERANCE, factor_kernel, paper_svr
from unskew.paper.methods import Array
from unskew.paper.protocol import direction, random_stream

RESULT = Path(__file__).parents[2] / "docs" / "table-1" / "training.json"


def main() -> None:
    """Train in three ways and write how far the predictions are apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    data = load("cal-housing", parser.parse_args().data)
    random = random_stream(0, data.name, "training")
    rows = random.permutation(len(data.y))
    U, test = rows[: data.n], rows[data.n : data.n + data.n_test]
    z = (data.X[U] - data.X[U].mean(axis=0)) @ direction(data, 0, seed=0)
    p = expit(4 * z / z.std())
    kept = random.uniform(size=data.n) < p
    scale = MinMaxScaler().fit(data.X[U])
    labels = StandardScaler().fit_transform(data.y[U].reshape(-1, 1)).ravel()[kept]
    X, X_test, weights = (
        scale.transform(data.X[U][kept]),
        scale.transform(data.X[test]),
        1 / p[kept],
    )
    gamma = 1.0 / X.shape[1]
    factor = factor_kernel(X, gamma=gamma, tolerance=RANK_TOLERANCE, max_rank=len(X))
    assert factor is not None  # no rank is higher than the number of rows
    result: dict[str, Any] = {"rows": len(X), "rank": factor.L.shape[1]}

    def libsvm(tolerance: float) -> Array:
        svr = SVR(C=1.0, epsilon=0.1, gamma=gamma, tol=tolerance, cache_size=2000)
        return np.asarray(svr.fit(X, labels, sample_weight=weights).predict(X_test))

    optimum = libsvm(1e-5)
    for name, predict in (
        ("factor", lambda: paper_svr(X, labels, X_test)(weights)),
        ("libsvm", lambda: libsvm(1e-3)),
    ):
        started = time.process_time()
        off = np.abs(predict() - optimum)
        result[name] = {
            "largest": float(off.max()),
            "rms": float(np.sqrt(np.mean(off**2))),
            "processor_seconds": round(time.process_time() - started, 2),
        }
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
