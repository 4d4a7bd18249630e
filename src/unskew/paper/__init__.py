"""The paper's experiment, Table 1: data sets, selection, weights, protocol, results.

It uses the public names of ``unskew`` alone, as any experiment outside would. ``unskew reproduce``
runs it, ``benchmarks/table_1`` runs it for several seeds, and ``docs/table_1.py`` makes its page.
It is not part of the stable interface.
"""
