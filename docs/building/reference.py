"""The public names by what they are for: the reference's pages are made from them.

A name of ``unskew`` belongs to the group of the folder that defines it, so that a new name is in
the reference without a line here. Those of ``unskew.theory`` are listed, and others come last.
"""

from __future__ import annotations

Groups = dict[str, tuple[str, list[str]]]

WEIGHTERS = "Weighters"
MODULES = {"errors", "results", "theory"}
"""Public modules, each with a page of its own."""
PURPOSES = {
    WEIGHTERS: "Make a weight for each row of the sample.",
    "Population and sample": "What a weighter weighs against.",
    "Numbers with intervals": "Means, totals, shares and scores of the population.",
    "Learning": "Train and judge models for the population.",
    "Diagnosis": "Is there bias, is there overlap, did the weights help?",
    "Weights and fitted weighters": "Functions of any weights, and files of fitted weighters.",
}
FOLDERS = {
    "diagnostics": "Diagnosis",
    "estimation": "Numbers with intervals",
    "learning": "Learning",
    "numerics": "Weights and fitted weighters",
    "overlap": "Diagnosis",
    "population": "Population and sample",
    "weighters": "Weights and fitted weighters",
}
THEORY: Groups = {
    "Certificates": (
        "What can be guaranteed of a fitted model.",
        [
            *("certificate", "dual_certificate"),
            *("Bound", "Intervals", "Bracket"),
        ],
    ),
    "Bounds of the paper": (
        "One function for each theorem.",
        [
            *("stability_coefficient", "distance", "risk_bound", "removal_bound"),
            *("frequency_bound", "frequency_distance_bound", "cluster_bound"),
            *("cluster_distance_bound", "kmm_bound", "kmm_distance_bound"),
            "prefer_clusters_over_kmm",
        ],
    ),
    "Further bounds": (
        "What else can be computed from counts and weights.",
        [
            *("importance_weighting_bound", "mean_matching_bound", "mean_distance"),
            *("cell_intervals", "worst_case_distance"),
            *("discriminative_bound", "discriminative_distance_bound"),
        ],
    ),
    "Constants of learners and kernels": (
        "What the bounds need to know.",
        [
            *("lambda_of_kernel_ridge", "lambda_of_svr", "lipschitz_constant"),
            *("gaussian_product", "largest_eigenvalue", "smallest_eigenvalue", "rounding_floor"),
        ],
    ),
}


def public_names() -> Groups:
    """Return the names of ``unskew`` by group."""
    import unskew

    groups: Groups = {title: (purpose, []) for title, purpose in PURPOSES.items()}
    for name in unskew.__all__:
        if name not in MODULES:
            groups[group_of(getattr(unskew, name))][1].append(name)
    return groups


def result_names() -> Groups:
    """Return the names of ``unskew.results``."""
    from unskew import results

    return {"Results": ("What functions return, to print and to read.", results.__all__)}


def error_names() -> Groups:
    """Return the names of ``unskew.errors`` that users may catch."""
    from unskew import errors

    purpose = "What can be caught; all errors derive from :class:`UnskewError`."
    return {"Errors and warnings": (purpose, errors.__all__)}


def theory_names() -> Groups:
    """Return the names of ``unskew.theory`` by group."""
    from unskew import theory

    listed = {name for _, names in THEORY.values() for name in names}
    others = [name for name in theory.__all__ if name not in listed]
    rest: Groups = {"Beyond the paper": ("What goes on from there.", others)}
    return THEORY | (rest if others else {})


def group_of(thing: object) -> str:
    """Return the group of a public class or function."""
    from unskew.weighters.base import Weighter

    if isinstance(thing, type) and issubclass(thing, Weighter):
        return WEIGHTERS
    return FOLDERS[thing.__module__.split(".")[1]]


def page(module: str, groups: Groups) -> str:
    """Return the reStructuredText that lists a module's names by group."""
    lines = [module, "=" * len(module), "", f".. currentmodule:: {module}", ""]
    for title, (purpose, names) in groups.items():
        lines += [title, "-" * len(title), "", purpose, ""]
        lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names] + [""]
    return "\n".join(lines)
