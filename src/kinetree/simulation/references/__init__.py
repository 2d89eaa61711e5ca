"""References: motions in time that a controller follows.

A reference is called with a time t and returns (q, qd, qdd), each a list with one scalar a coordinate. t may be a
float, a NumPy array (the scalars are then arrays, or floats where they are constant) or a traced value. Any function
of t that does this is a reference.
"""

from .motions import Constant, Cosine, Cycloid, Hold, Polynomial
from .sampling import Reference, sampled
from .table import Table
from .trapezoid import Trapezoid

__all__ = ["Constant", "Cosine", "Cycloid", "Hold", "Polynomial", "Reference", "Table", "Trapezoid", "sampled"]
