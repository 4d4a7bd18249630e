"""Print a kernel type of OpenBLAS other than the one that it chooses on this processor.

Kernels of different types differ in the last bits of what they compute. ``make test-kernels`` runs
tests under the type that is printed here, so that none comes to depend on these bits. Nothing is
printed, and the reason goes to standard error, where there is no other type to be had: on a
processor that is not x86, and where NumPy and SciPy use another library.
"""

from __future__ import annotations

import os
import subprocess
import sys

OTHER = "Nehalem"
"""The least of the types in the OpenBLAS of NumPy and SciPy: every x86 of today can run it."""

_ASK = """
import scipy.linalg, threadpoolctl
print(*{found.get("architecture") for found in threadpoolctl.threadpool_info()
        if found["internal_api"] == "openblas"})
"""


def kernel_types(wanted: str = "") -> set[str]:
    """Return the kernel types in use, if this one is asked for; none without OpenBLAS."""
    environment = {**os.environ, "OPENBLAS_CORETYPE": wanted}
    asked = subprocess.run(
        [sys.executable, "-c", _ASK], env=environment, capture_output=True, text=True, check=True
    )
    return set(asked.stdout.split())


def main() -> None:
    """Print the type if it can be had, or else the reason."""
    own, other = kernel_types(), kernel_types(OTHER)
    if other == {OTHER} and own != other:
        print(OTHER)
    else:
        found = f"uses {' and '.join(sorted(own))} kernels" if own else "is not OpenBLAS"
        print(f"Not tested under other kernels: the BLAS here {found}, and {OTHER} kernels "
              "cannot be had as others.", file=sys.stderr)  # fmt: skip


if __name__ == "__main__":
    main()
