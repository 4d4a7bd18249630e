"""One method per file; ``base.py`` is the contract, ``cells.py`` what all partitions share."""
