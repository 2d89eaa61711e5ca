"""References: motions in time that a controller follows.

A reference is a function of the time t that returns (q, qd, qdd), each a list with one scalar per coordinate. t may be
a float, a traced value or a NumPy array. For an array, the scalars are arrays, or floats if they are constant.
"""

from .motions import Constant, Cosine, Cycloid, Hold, Polynomial, Reference, Trapezoid, sampled
from .table import Table
from .waypoints import TimedPath, Waypoints

__all__ = [
    "Constant", "Cosine", "Cycloid", "Hold", "Polynomial", "Reference", "Table", "TimedPath", "Trapezoid", "Waypoints",
    "sampled",
]  # fmt: skip
