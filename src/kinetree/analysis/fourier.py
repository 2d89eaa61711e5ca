"""Exact sums of products: polynomials in symbols x and in e^(i x), with rational coefficients.

A sine is (e^(ix) - e^(-ix)) / 2i. Therefore sin^2 + cos^2 = 1, sums of angles and every cancellation need no rules of
their own: two expressions are equal if and only if their terms are. A negative power is a division by a product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from .._support.optional import optional
from ..errors import InputError
from ..model.mechanism import Mechanism
from ..model.parameters import Expression, Parameter
from ..model.parts import Placement

Monomial = tuple[tuple[str, int], ...]
"""Powers of symbols by name, sorted; "~x" is e^(i x)."""
Coefficient = tuple[Fraction, Fraction]
"""Real and imaginary part."""

TERMS = 20000
"""The most terms of a sum; longer equations are unreadable and slow to simplify."""


class Sum:
    """A sum of monomials with complex coefficients; immutable."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Monomial, Coefficient]) -> None:
        """Keep terms, none of which is zero."""
        self.terms = terms
        if len(terms) > TERMS:
            raise InputError(f"the equations have more than {TERMS} terms; print those of a smaller mechanism")

    @classmethod
    def number(cls, x: Fraction | int) -> Sum:
        """Return a number."""
        return cls({(): (Fraction(x), Fraction(0))} if x else {})

    @classmethod
    def symbol(cls, name: str, power: int = 1) -> Sum:
        """Return a symbol, or a power of it."""
        return cls({((name, power),): (Fraction(1), Fraction(0))})

    def __add__(self, other: Sum) -> Sum:
        """Return the sum."""
        out = dict(self.terms)
        for monomial, (a, b) in other.terms.items():
            re, im = out.get(monomial, (0, 0))
            _put(out, monomial, re + a, im + b)
        return Sum(out)

    def __neg__(self) -> Sum:
        """Return the negative."""
        return Sum({m: (-a, -b) for m, (a, b) in self.terms.items()})

    def __sub__(self, other: Sum) -> Sum:
        """Return the difference."""
        return self + -other

    def __mul__(self, other: Sum) -> Sum:
        """Return the product."""
        out: dict[Monomial, Coefficient] = {}
        for m, (a, b) in self.terms.items():
            for n, (c, d) in other.terms.items():
                monomial = _times(m, n)
                re, im = out.get(monomial, (0, 0))
                _put(out, monomial, re + a * c - b * d, im + a * d + b * c)
        return Sum(out)

    def __truediv__(self, other: Sum) -> Sum:
        """Return the quotient by a single product."""
        if len(other.terms) != 1:
            raise InputError("a quotient by a sum of terms has no short form; print functions without one")
        ((monomial, (a, b)),) = other.terms.items()
        size = a * a + b * b
        return self * Sum({tuple((name, -power) for name, power in monomial): (a / size, -b / size)})

    def cos(self) -> Sum:
        """Return the cosine of a sum of integer multiples of symbols."""
        return Sum(_halved(self._exponential(1), self._exponential(-1), Fraction(1)))

    def sin(self) -> Sum:
        """Return the sine of a sum of integer multiples of symbols."""
        plus, minus = self._exponential(1), self._exponential(-1)
        return Sum(_halved(plus, -minus, Fraction(0), Fraction(-1)))

    def _exponential(self, sign: int) -> Sum:
        """Return e^(+-i x)."""
        powers = []
        for monomial, (a, b) in self.terms.items():
            whole = len(monomial) == 1 and monomial[0][1] == 1 and b == 0 and a.denominator == 1
            if not whole:
                raise InputError("an angle is not a sum of integer multiples of coordinates and parameters")
            powers.append((f"~{monomial[0][0]}", sign * int(a)))
        return Sum({tuple(sorted(powers)): (Fraction(1), Fraction(0))})

    def harmonics(self) -> Iterator[tuple[dict[str, int], str, dict[Monomial, Fraction]]]:
        """Yield (multiples of angles, "cos" or "sin", coefficient as real terms), constants first.

        c e^(ix) and its conjugate together are 2 Re c cos x - 2 Im c sin x.
        """
        cosines: dict[Monomial, dict[Monomial, Fraction]] = {}
        sines: dict[Monomial, dict[Monomial, Fraction]] = {}
        for monomial, (a, b) in self.terms.items():
            angle = tuple((name[1:], power) for name, power in monomial if name[0] == "~")
            rest = tuple((name, power) for name, power in monomial if name[0] != "~")
            if not angle:
                cosines.setdefault((), {})[rest] = a
            elif _leading(angle) > 0:  # its conjugate is the other half
                if a:
                    cosines.setdefault(angle, {})[rest] = 2 * a
                if b:
                    sines.setdefault(angle, {})[rest] = -2 * b
        for angle in sorted({*cosines, *sines}, key=lambda x: (len(x), x)):
            for what, group in (("cos", cosines), ("sin", sines)):
                if angle in group:
                    yield dict(angle), what, group[angle]

    def products(self, keep: str) -> Sum:
        """Return the sum in powers of cosines and sines of single angles, named "cos x" and "sin x".

        Even powers are written in the function `keep`, by sin^2 = 1 - cos^2 or the reverse.
        """
        out = Sum({})
        for monomial, coefficient in self.terms.items():
            rest = tuple((name, power) for name, power in monomial if name[0] != "~")
            product = Sum({rest: coefficient})
            for name, power in monomial:
                if name[0] == "~":
                    product = product * _power_of_exponential(name[1:], power, keep)
            out = out + product
        return out


@lru_cache(maxsize=1000)
def _power_of_exponential(name: str, power: int, keep: str) -> Sum:
    """Return (cos x + i sin x)^power with at most one factor of the function that is not kept."""
    kept, other = Sum.symbol(f"{keep} {name}"), Sum.symbol(f"{'sin' if keep == 'cos' else 'cos'} {name}")
    square = Sum.number(1) - kept * kept
    cosine, sine = (kept, other) if keep == "cos" else (other, kept)
    imaginary = Sum({(): (Fraction(0), Fraction(1 if power > 0 else -1))})
    out = Sum.number(1)
    for _ in range(abs(power)):
        out = out * (cosine + imaginary * sine)
        out = _without_square(out, other, square)
    return out


def _without_square(x: Sum, other: Sum, square: Sum) -> Sum:
    ((name, _),) = next(iter(other.terms))
    out = Sum({})
    for monomial, coefficient in x.terms.items():
        power = dict(monomial).get(name, 0)
        if power < 2:
            out = out + Sum({monomial: coefficient})
        else:
            out = out + Sum({tuple((n, k) for n, k in monomial if n != name): coefficient}) * square
    return out


def exact(x: float, make: Callable[[Fraction, bool], Sum] | None = None) -> Sum:
    """Return a float as an exact number: a short fraction, the square root of one, or else its decimals.

    A root is passed to `make` by its square and its sign; `make` returns a symbol for it.
    """
    plain = _short(x, 10000)
    if plain is not None:
        return Sum.number(plain)
    square = _short(x * x, 100)
    if square is not None and make is not None:
        return make(square, x < 0)
    return Sum.number(Fraction(repr(x)))


def _short(x: float, denominator: int) -> Fraction | None:
    fraction = Fraction(x).limit_denominator(denominator)
    return fraction if math.isclose(float(fraction), x, rel_tol=1e-15, abs_tol=0.0) or fraction == x else None


def _leading(angle: Monomial) -> int:
    """Return the sign of an angle's last coordinate, by which one of x and -x is chosen."""
    return angle[-1][1]


def _put(out: dict[Monomial, Coefficient], monomial: Monomial, re: Fraction, im: Fraction) -> None:
    if re or im:
        out[monomial] = (re, im)
    else:
        out.pop(monomial, None)


def _times(m: Monomial, n: Monomial) -> Monomial:
    if not m or not n:
        return m or n
    powers = dict(m)
    for name, power in n:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def _halved(a: Sum, b: Sum, re: Fraction, im: Fraction = Fraction(0)) -> dict[Monomial, Coefficient]:
    half = Sum({(): (re / 2, im / 2)})
    return ((a + b) * half).terms


# --- Names for the numbers of a mechanism: m1 for a mass, c1x for a center of mass, l1 for a length of link 1, g.


def freed_numbers(mechanism: Mechanism, symbols: str) -> tuple[Mechanism, dict[str, float], dict[str, str]]:
    """Return the mechanism with every nonzero number as a free parameter, values of those that stay, and a legend.

    As in textbooks, l1 is the length of link 1: from its joint to the next one, to the end of a loop or to a frame;
    l0 is that of the ground. Where several places of a link differ, the others are l1b, l1c and so on.
    """
    names = _Names(p.name for p in mechanism.parameters)
    number, vector = names.number, names.vector
    index = {name: k + 1 for name, k in mechanism.body_indices.items()}
    masses, turns = {}, {}
    for i, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True), 1):
        masses[i] = {
            "mass": number(f"m{i}", body.mass, f"mass of {body.name} [kg]"),
            "com": vector(f"c{i}", body.com, "xyz", f"center of mass of {body.name}, from its joint [m]"),
            "inertia": vector(
                f"I{i}",
                body.inertia,
                ("xx", "yy", "zz", "xy", "yz", "zx"),
                f"inertia of {body.name} about its center of mass [kg m^2]",
                shorten=False,
            ),
        }
        turns[i] = {
            "pitch": number(f"h{i}", joint.pitch, f"pitch of {joint.name} [m/rad]"),
            "armature": vector(f"J{i}", joint.armature, "123456", f"armature of {joint.name} [kg m^2, kg]"),
        }

    def ratio(k: int, coupling: str, joint: str, x: object) -> Any:
        return x if x in (1, -1) else number(f"n{k}", x, f"ratio of {coupling} to {joint}", down=True)

    def placed(place: Placement, body: str, what: str) -> Placement:
        return replace(place, translation=names.place(index[body], body, place.translation, what))

    joints = [
        replace(j, placement=placed(j.placement, j.parent, j.name), **turns[i])
        for i, j in enumerate(mechanism.joints, 1)
    ]
    loops = tuple(
        replace(
            x,
            placement_a=placed(x.placement_a, x.body_a, x.name),
            placement_b=placed(x.placement_b, x.body_b, x.name),
            length=number(f"d{k}", x.length, f"length of {x.name} [m]"),
            pitch=number(f"h_{x.name}", x.pitch, f"pitch of {x.name} [m/rad]"),
            radius=None if x.radius is None else number(f"r{k}", x.radius, f"radius of {x.name} [m]"),
        )
        for k, x in enumerate(mechanism.loops, 1)
    )
    couplings = tuple(
        replace(
            x,
            terms=tuple((name, ratio(k, x.name, name, n)) for name, n in x.terms),
            offset=number(f"o{k}", x.offset, f"offset of {x.name}"),
        )
        for k, x in enumerate(mechanism.couplings, 1)
    )
    frames = tuple(replace(f, placement=placed(f.placement, f.body, f.name)) for f in mechanism.frames)
    gravity = vector("g", mechanism.gravity, "xyz", "gravity [m/s^2]", down=True)
    declared = tuple(replace(p, free=True) for p in mechanism.parameters)
    made = replace(
        mechanism,
        bodies=tuple(replace(b, **masses[i]) for i, b in enumerate(mechanism.bodies, 1)),
        joints=tuple(joints),
        frames=frames,
        loops=loops,
        couplings=couplings,
        gravity=gravity,
        parameters=(*declared, *names.made),
    )
    stay = {"declared": declared, "all": (*declared, *names.made), "none": ()}[symbols]
    texts = {p.name: f"parameter{f' [{p.unit}]' if p.unit else ''}" for p in declared} | names.texts
    return made, {p.name: p.value for p in stay}, texts


class _Names:
    """Parameters for plain numbers, with names that are not in use, and what each of them is."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken, self.made = set(taken), list[Parameter]()
        self.texts: dict[str, str] = {}
        self._places: dict[tuple[int, tuple[float, ...]], tuple] = {}
        self._links: dict[int, int] = {}

    def number(self, name: str, x: Any, what: str, *, down: bool = False) -> Any:
        """Return a number as a parameter; zeros and expressions are kept, and `down` makes the value positive."""
        if isinstance(x, Expression) or x == 0:
            return x
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.texts[name] = what
        negative = down and x < 0
        self.made.append(Parameter(name, -float(x) if negative else float(x), free=True))
        made = Expression("name", (name,))
        return -made if negative else made

    def vector(self, name: str, xs, letters, what: str, *, down: bool = False, shorten: bool = True) -> tuple:
        """Return numbers as parameters with one letter each; a single nonzero number gets no letter."""
        alone = shorten and sum(isinstance(x, Expression) or x != 0 for x in xs) == 1
        return tuple(
            self.number(name if alone else name + letter, x, what if alone else f"{what}, {letter}", down=down)
            for x, letter in zip(xs, letters, strict=False)
        )

    def place(self, link: int, body: str, xs: tuple, what: str) -> tuple:
        """Return the vector from the origin of a link to a place on it; the same place has the same symbols."""
        if any(isinstance(x, Expression) for x in xs) or not any(xs):
            return self.vector(f"l{link}", xs, "xyz", f"on {body} to {what} [m]")
        key = link, tuple(float(x) for x in xs)
        if key not in self._places:
            count = self._links[link] = self._links.get(link, 0) + 1
            name = f"l{link}" + ("" if count == 1 else chr(ord("a") + count - 1) if count <= 26 else f"_{count}")
            alone = sum(x != 0 for x in xs) == 1
            self._places[key] = self.vector(name, xs, "xyz", f"length of {body}, to {what} [m]", down=alone)
        return self._places[key]


def import_sympy() -> Any:
    """Return SymPy, or raise an error that names the package to install."""
    return optional("sympy", "Equations in symbols", "symbolic")
