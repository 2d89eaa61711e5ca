"""Exact sums in textbook form: SymPy expressions in the shortest of a few forms."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .fourier import Monomial, Sum
from .symbols import import_sympy


def textbook(x: Sum, table: dict[str, Any], motion: set[str]) -> Any:
    """Return a sum in SymPy in its shortest form: with sums of angles, or with products of sines and cosines."""
    sympy = import_sympy()

    angles = {name for name in table if any(f"~{name}" in dict(m) for m in x.terms)}
    trigonometry = {f"{f} {name}": getattr(sympy, f)(table[name]) for name in angles for f in ("cos", "sin")}
    forms = [_by_angles(sympy, x, table, motion)]
    if angles:
        forms += [_by_products(sympy, x.products(keep), table | trigonometry, motion) for keep in ("cos", "sin")]
    return min(forms, key=lambda form: form.count_ops())


def _by_angles(sympy: Any, x: Sum, table: dict[str, Any], motion: set[str]) -> Any:
    total = sympy.Integer(0)
    for angle, what, terms in x.harmonics():
        argument = sympy.Add(*(k * table[name] for name, k in angle.items()))
        total += _collected(sympy, terms, table, motion) * getattr(sympy, what)(argument)
    return total


def _by_products(sympy: Any, x: Sum, table: dict[str, Any], motion: set[str]) -> Any:
    groups: dict[Monomial, dict[Monomial, Fraction]] = {}
    for monomial, (c, _) in x.terms.items():
        angular = tuple((name, power) for name, power in monomial if " " in name)
        rest = tuple((name, power) for name, power in monomial if " " not in name)
        groups.setdefault(angular, {})[rest] = c
    return sympy.Add(
        *(
            _product(sympy, angular, Fraction(1), table) * _collected(sympy, terms, table, motion)
            for angular, terms in groups.items()
        )
    )


def _collected(sympy: Any, terms: dict[Monomial, Fraction], table: dict[str, Any], motion: set[str]) -> Any:
    """Return the sum of terms as constant factors times functions of the motion, with equal factors collected."""
    coefficients: dict[Monomial, dict[Monomial, Fraction]] = {}
    for monomial, c in terms.items():
        moving = tuple((name, power) for name, power in monomial if name in motion)
        rest = tuple((name, power) for name, power in monomial if name not in motion)
        coefficients.setdefault(moving, {})[rest] = c
    factors: dict[Any, Any] = {}
    for moving, rest in coefficients.items():
        whole = sympy.factor(sympy.expand(sympy.Add(*(_product(sympy, m, c, table) for m, c in rest.items()))))
        number, factor = whole.as_coeff_Mul()
        factors[factor] = factors.get(factor, 0) + number * _product(sympy, moving, Fraction(1), table)
    return sympy.Add(*(_signed(factor, sympy.factor(moving)) for factor, moving in factors.items()))


def _signed(factor: Any, moving: Any) -> Any:
    """Return the product with its sign in front, -a (x + y) rather than a (-x - y)."""
    negative = moving.could_extract_minus_sign() and not factor.is_Add and factor != 1
    return -factor * -moving if negative else factor * moving


def _product(sympy: Any, monomial: Monomial, c: Fraction, table: dict[str, Any]) -> Any:
    factors = [table[name] ** power for name, power in monomial]
    return sympy.Mul(sympy.Rational(c.numerator, c.denominator), *factors)
