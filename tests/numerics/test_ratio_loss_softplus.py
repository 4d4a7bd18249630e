"""log(1 + e^x), against NumPy's own."""

import numpy as np

from unskew.numerics.ratio_loss import softplus


def test_it_is_the_logarithm_of_a_sum_at_every_size():
    scores = np.concatenate([[-np.inf, np.inf, -800.0, 800.0], np.linspace(-40, 40, 401)])
    np.testing.assert_allclose(softplus(scores), np.logaddexp(0.0, scores), rtol=1e-13, atol=0)
