"""Rosenbrock methods as data: implicit in the Jacobian of the rates alone, for stiff systems."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .tableaus import Pair, Row


@dataclass(frozen=True)
class Rosenbrock(Pair):
    """An embedded method whose stages solve a linear system each, with the same matrix I - h gamma J.

    The stages are (I - h gamma J) k_s = gamma (f(t + c_s h, y + h sum a_sj k_j) + sum g_sj k_j + d_s h df/dt), where J
    is the Jacobian of the rates f at the beginning of the step. The other fields are those of a Pair.
    """

    gamma: float
    g: tuple[Row, ...]
    d: Row


@cache
def rodas5p() -> Rosenbrock:
    """Return Rodas5P: order 5 with an error estimate of order 4, stiffly accurate, dense output of order 4.

    The coefficients are those of G. Steinebach, BIT Numerical Mathematics 63:27 (2023), for k_s without the factor h.
    """
    sixth = (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946)
    a = (
        (),
        (3.0,),
        (2.849394379747939, 0.45842242204463923),
        (-6.954028509809101, 2.489845061869568, -10.358996098473584),
        (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
        sixth,
        (*sixth, 1.0),
        (*sixth, 1.0, 1.0),
    )
    g = (
        (),
        (-14.155112264123755,),
        (-17.97296035885952, -2.859693295451294),
        (147.12150275711716, -1.41221402718213, 71.68940251302358),
        (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
        (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
        (
            30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623,
            -28.087943162872662,
        ),
        (
            37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002,
            -54.66780262877968, -9.48861652309627,
        ),
    )  # fmt: skip
    gamma = 0.21193756319429014
    d = (gamma, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069, 0.0, 0.0, 0.0)
    c = (0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0)
    dense = (
        (
            25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204, 0.524948541321073,
            1.1241088310450404, 0.4272876194431874, -0.17202221070155493,
        ),
        (
            -9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796, 20.176138334709044,
            15.98066361424651, -6.789040303419874, -6.710236069923372,
        ),
        (
            11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643, -52.072871366152654,
            -59.78993625266729, -0.15582684282751913, 4.883087185713722,
        ),
    )  # fmt: skip
    b = (*a[-1], 1.0)
    e = (0.0,) * 7 + (1.0,)
    p = tuple(_polynomial(*weights) for weights in zip(b, *dense, strict=True))
    return Rosenbrock("rodas5p", 5, a, b, c, e, (), 5, (), (), p, gamma, g, d)


def _polynomial(b: float, x: float, y: float, z: float) -> Row:
    """Return the coefficients of theta (b + (1 - theta) (x + theta (y + theta z))), that of theta^1 first."""
    return (b + x, y - x, z - y, -z)
