"""The polynomials of elementary functions on small intervals, with the highest power first, and parts of constants.

Those of sine and cosine, on [-pi/4, pi/4], are minimax polynomials by the bits of numbers. The others were fitted by
interpolation at Chebyshev nodes.
"""

SINE = {
    64: (
        1.58962301576546568e-10,
        -2.50507477628578073e-8,
        2.75573136213857245e-6,
        -1.98412698295895386e-4,
        8.33333333332211859e-3,
        -1.66666666666666307e-1,
    ),
    32: (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
}
"""The polynomials S in sin r = r + r^3 S(r^2)."""

COSINE = {
    64: (
        -1.13585365213876817e-11,
        2.08757008419747317e-9,
        -2.75573141792967388e-7,
        2.48015872888517045e-5,
        -1.38888888888730564e-3,
        4.16666666666665929e-2,
    ),
    32: (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
}
"""The polynomials C in cos r = 1 - r^2/2 + r^4 C(r^2)."""

ATAN = (0.01627194475162406, -0.034558092551413795, 0.04551108126325172, -0.052303478730160745, 0.058789145444006215,
        -0.06666423628069258, 0.0769229630497447, -0.09090908751076636, 0.11111111105106705, -0.14285714285659326,
        0.199999999999998, -0.3333333333333333)  # fmt: skip
"""The polynomial P in atan t = t + t^3 P(t^2) for |t| <= tan(pi/8)."""

LOG = (0.14617807153417325, 0.15331611722055008, 0.1818289243253687, 0.22222211089379496, 0.28571428626253836,
       0.3999999999989889, 0.666666666666667)  # fmt: skip
"""The polynomial P in log(1 + f) = f - s (f - s^2 P(s^2)), s = f / (2 + f), for (1 + f)^2 between 1/2 and 2."""

EXP = (2.09147553258932e-09, 2.5105312729622103e-08, 2.755727347871858e-07, 2.755725517000089e-06,
       2.480158732567746e-05, 0.0001984126987500228, 0.0013888888888883711, 0.008333333333326084, 0.04166666666666667,
       0.1666666666666667, 0.5)  # fmt: skip
"""The polynomial P in exp r = 1 + r + r^2 P(r) for |r| <= log(2) / 2."""

QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)
"""pi/4 in two parts."""

LOG_2_SHORT = (0.693147180559663, 2.8235290563031577e-13)
"""log 2 in two parts, the first of which ends in twelve zero bits, so that its products with exponents are exact."""
