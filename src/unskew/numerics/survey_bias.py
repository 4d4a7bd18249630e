"""The bias of a survey's mean under models of selection on the outcome: SMUB and MUB."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.typing import FloatArray


class ProxyMoments(NamedTuple):
    """A proxy of y, its best linear prediction, over the sample and the population."""

    correlation: float
    """Of y and the proxy in the sample, r."""
    distance: float
    """The sample's mean of the proxy minus the population's, in its standard deviations, d."""
    spread: float
    """The standard deviation of y in the sample."""

    def standardised_bias(self, phi: float) -> float:
        """Return SMUB: the bias of the sample's mean in standard deviations of y.

        Selection depends on (1 - φ) times the proxy plus φ times y, both standardised (Little,
        West, Boonstra and Hu 2020, equation 8).

        Examples
        --------
        >>> moments = ProxyMoments(0.5, 0.2, 3.0)
        >>> [moments.standardised_bias(phi) for phi in (0.0, 0.5, 1.0)]
        [0.1, 0.2, 0.4]
        """
        r = self.correlation
        below = phi * r + (1 - phi)
        return float((phi + (1 - phi) * r) / below * self.distance) if below > 0 else float("nan")


def proxy_moments(
    values: FloatArray, design: FloatArray, features: FloatArray, population: FloatArray
) -> ProxyMoments | None:
    """Return the moments of the best linear prediction; None if there is none.

    Parameters
    ----------
    values, design : ndarray of shape (n_rows,)
        y and the design weights.
    features : ndarray of shape (n_rows, n_features)
    population : ndarray of shape (n_features,)
        The population's means of the features.
    """
    shares = design / design.sum()
    mean = shares @ features
    centred = features - mean
    deviations = values - shares @ values
    roots = np.sqrt(shares)[:, None]
    slope = np.linalg.lstsq(roots * centred, roots[:, 0] * deviations, rcond=1e-10)[0]
    proxy = centred @ slope
    spread = float(np.sqrt(shares @ deviations**2))
    of_proxy = float(np.sqrt(shares @ proxy**2))
    if spread <= 0 or of_proxy <= 1e-10 * spread:
        return None
    correlation = float((shares * proxy) @ deviations) / (spread * of_proxy)
    distance = float((mean - population) @ slope) / of_proxy
    return ProxyMoments(correlation, distance, spread)
