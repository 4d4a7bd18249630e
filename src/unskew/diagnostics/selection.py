"""Which kind of selection the data allow: by columns, by the label, or neither."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from numpy.typing import ArrayLike

from unskew.diagnostics.diagnose import diagnose
from unskew.diagnostics.diagnosis import Diagnosis
from unskew.errors import LabelShiftWarning, plain
from unskew.population.population import Population
from unskew.weighters.label_shift import LabelShiftTest, LabelShiftWeights

Kind = Literal["no difference", "columns or label", "not the label alone"]

_NOT_TESTABLE = (
    "Whether selection depends on the label beyond the columns cannot be tested: labels outside of "
    "the sample are not known."
)


@dataclass(frozen=True, repr=False)
class SelectionComparison:
    """What :func:`unskew.compare_selection` returns; it prints as a few sentences.

    Attributes
    ----------
    kind : {"no difference", "columns or label", "not the label alone"}
        What the data allow.
    diagnosis : Diagnosis
        Of the sample without weights.
    label_shift : LabelShiftTest
        Whether the population can be the sample's classes in other shares.
    sample_shares, population_shares : dict from class to float
        The second if it is label shift.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import compare_selection
    >>> random = np.random.default_rng(0)
    >>> y, hidden = random.uniform(size=500) < 0.5, random.uniform(size=2000) < 0.2
    >>> X, U = random.normal(2.0 * y[:, None]), random.normal(2.0 * hidden[:, None])
    >>> type(compare_selection(X, y, U)).__name__
    'SelectionComparison'
    """

    kind: Kind
    diagnosis: Diagnosis
    label_shift: LabelShiftTest
    sample_shares: dict[Any, float]
    population_shares: dict[Any, float]

    def __str__(self) -> str:
        overlap = self.diagnosis.overlap
        uncovered = 0.0 if overlap is None else overlap.uncovered
        shares = ", ".join(
            f"{label}: {100 * self.sample_shares[label]:.1f} % to {100 * share:.1f} %"
            for label, share in self.population_shares.items()
        )
        lines = {
            "no difference": [
                "The columns of sample and population do not differ: neither selection by the "
                "columns nor by the label alone is visible."
            ],
            "columns or label": [
                "The columns differ, and both explanations fit. If the label causes the columns, "
                f"use LabelShiftWeights (the classes go from {shares}); if the columns cause the "
                "label, weigh by columns.",
                str(self.label_shift),
            ],
            "not the label alone": [
                "The columns differ, and the label alone does not explain it: weigh by columns, or "
                "use HeckmanClassifier if the class decides too and a column moves selection "
                "alone.",
                str(self.label_shift),
            ],
        }[self.kind]
        if uncovered > 0:
            lines.append(
                f"{100 * uncovered:.1f} % of the population is not covered by the sample: weights "
                "by columns cannot represent it."
            )
        return "\n".join([*lines, _NOT_TESTABLE])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(plain(line))}</p>" for line in str(self).splitlines())


def compare_selection(
    X: Any,
    y: Any,
    population: Any,
    *,
    classifier: Any = None,
    sample_weight: ArrayLike | None = None,
) -> SelectionComparison:
    """Compare what the data say of selection by the columns and by the label.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        The sample.
    y : array-like of shape (n_samples,)
        Its classes.
    population : Population, or anything that :class:`unskew.Population` takes
        With the same columns; it is read more than once.
    classifier : classifier, optional
        As in :class:`unskew.LabelShiftWeights`.
    sample_weight : array-like of shape (n_samples,), optional
        Design weights of the sample.

    Returns
    -------
    SelectionComparison

    Notes
    -----
    Selection by the columns explains any difference between the columns, as far as the sample
    covers the population. Selection by the label alone explains only some, and that is tested.
    Selection by the label beyond the columns leaves no trace in them.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import compare_selection
    >>> random = np.random.default_rng(0)
    >>> y, hidden = random.uniform(size=1000) < 0.5, random.uniform(size=5000) < 0.1
    >>> sample = random.normal(size=(1000, 2)) + y[:, None]
    >>> population = random.normal(size=(5000, 2)) + hidden[:, None]
    >>> compare_selection(sample, y, population).kind
    'columns or label'
    >>> population[:, 1] += 1.0
    >>> compare_selection(sample, y, population).kind
    'not the label alone'
    """
    target = Population.from_data(population)
    found = diagnose(X, target, y=y, sample_weight=sample_weight)
    weighter = LabelShiftWeights(classifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelShiftWarning)  # it is part of the answer
        weighter.fit(X, y, population=target, sample_weight=sample_weight)
    kind: Kind = "columns or label" if weighter.shift_test_.holds else "not the label alone"
    if found.verdict.status == "no bias found" and weighter.shift_test_.holds:
        kind = "no difference"
    classes = weighter.classes_.tolist()
    return SelectionComparison(
        kind,
        found,
        weighter.shift_test_,
        dict(zip(classes, weighter.sample_shares_.tolist(), strict=True)),
        dict(zip(classes, weighter.population_shares_.tolist(), strict=True)),
    )
