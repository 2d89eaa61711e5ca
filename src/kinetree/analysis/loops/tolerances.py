"""What analyses of loops count as closed, consistent, singular and redundant.

Gaps are in radians, or in units of the mechanism's characteristic length; their largest entry counts. Rates are
compared with the motion at the loop: `model.scales.rate_sizes`. Singular values are those of J in the same units,
relative to the largest. RANK and DEPENDENT, which compiled code uses too, stand in `compiler/lower/loop_pattern.py`.
"""

from __future__ import annotations

from ...compiler.lower.loop_pattern import DEPENDENT, RANK

# --- Closed: gaps of positions

CLOSED = 1e-9
"""The largest gap of a position that counts as closed."""
ASSEMBLED = 1e-12
"""The largest gap of a position that assembly returns, by default."""
ROUNDED = 1e-13
"""The gap above which a position of a motion is corrected again: rounding errors."""

# --- Consistent: rates at which velocities and accelerations open the loops

CONSISTENT = 1e-6
"""The largest gap of positions and rate of loops of a given motion, by default, relative to its size."""
SLIP = 1e-9
"""The largest difference between given velocities and those that the loops allow, relative to the largest given one."""
REST = 1e-18
"""Rates of loops that count as zero [per s or s^2]: the rounding errors of a motion that comes to rest. A real motion
at this rate would take longer than the age of the Earth."""

# --- Singular and redundant: directions that J does not restrict, and rows of J that add nothing

INDEPENDENT = max(RANK, DEPENDENT**0.5)
"""The least singular value of independent rows: rows that depend on others at closed positions appear independent by
the order of the gap."""
IDLE = 1e-10
"""The size of a row of J, relative to the largest, below which it counts as zero; well above rounding."""
SHARE = 1e-6
"""The size of coefficients, multipliers and wrenches, relative to the largest, below which they count as zero."""
STILL = 1e-5
"""The largest share in any motion of a degree of freedom that counts as stationary."""
NEARLY_SINGULAR = 0.1
"""The closeness to a singular position, 0 where it is singular and 1 as usual nearby, below which it is reported."""
