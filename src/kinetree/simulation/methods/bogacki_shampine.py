"""The pair of Bogacki and Shampine of orders 3 and 2, with dense output of order 3: [Bogacki1989], (4).

For loose tolerances and forces with kinks, where higher orders do not pay. `e` is the difference of the two sets of
weights. The dense output is the cubic through the values and rates at both ends of a step.
"""

from __future__ import annotations

from .adaptive_steps import Pair

BS3 = Pair(
    name="bs3",
    a=((), (1 / 2,), (0.0, 3 / 4)),
    b=(2 / 9, 1 / 3, 4 / 9),
    c=(0.0, 1 / 2, 3 / 4),
    e=(-5 / 72, 1 / 12, 1 / 9, -1 / 8),
    e3=(),
    q=3,
    a_extra=(),
    c_extra=(),
    p=((1.0, -4 / 3, 5 / 9), (0.0, 1.0, -2 / 3), (0.0, 4 / 3, -8 / 9), (0.0, -1.0, 1.0)),
)
