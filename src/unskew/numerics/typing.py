"""Array types used throughout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
