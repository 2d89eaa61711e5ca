"""The type of arrays of real numbers, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating]
"""An array of real numbers, in double or single precision."""
