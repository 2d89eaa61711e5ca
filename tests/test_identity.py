"""Identities of values and functions: equal in every process, and other for whatever changes a result."""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import subprocess
import sys
import threading
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from kinetree._support.identity import Unidentified, digest

FACTOR = 2.0
TABLE = {"gain": [1.0, 2.0], "names": {"a", "b"}}
Pair = namedtuple("Pair", "low high")


def scaled(x, by=2.0):
    return x * by


def helped(x):
    return scaled(x) + FACTOR + TABLE["gain"][1] + sum(inner(y) for y in x)


def inner(y):
    return math.sin(y)


def odd(n):
    return n > 0 and even(n - 1)


def even(n):
    return n == 0 or odd(n - 1)


@dataclass
class Weighted:
    weight: float
    parts: list = field(default_factory=list)

    def __call__(self, run):
        return self.weight * scaled(run)


class Plain:
    OFFSET = 0.3

    def __init__(self, gain):
        self.gain = gain

    def measure(self, run):
        return self.gain * run + self.OFFSET

    @property
    def doubled(self):
        return 2.0 * self.gain


def plus(n):
    return lambda x: x + n


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.1 + 0.2, 0.3), (1, 1.0), (0.0, -0.0), ("1", 1), ([1, 2], [2, 1]), (1j, 2j), (np.zeros(3), np.zeros((3, 1))),
        (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)), ({1, 2}, {1, 3}), ((1,), [[1]]),
        (kt.grid(0, 1, 3), kt.grid(0, 1, 4)), (kt.Hold(0.3), kt.Hold(0.4)), (lambda x: x + 1, lambda x: x + 2),
        (kt.Cycloid(0, 1, 2), kt.Polynomial(0, 1, 2)), ({"a": 1}, {"a": 2}), ({"a": 1}, OrderedDict(a=1)),
        (Fraction(1, 3), Fraction(2, 3)), (Path("a"), Path("b")), (Pair(1, 2), Pair(1, 3)), (math.sin, math.cos),
        (np.sin, np.cos), (np.linalg.norm, np.linalg.det), (defaultdict(int, a=1), defaultdict(list, a=1)),
        (np.random.default_rng(1), np.random.default_rng(2)), (Slotted(1, 2), Slotted(1, 3)), (kt.rms, kt.peak),
        (functools.partial(scaled, by=2.0), functools.partial(scaled, by=3.0)), (Plain(1.0), Plain(2.0)),
        (Plain(1.0).measure, Plain(2.0).measure), (Weighted(1.0), Weighted(2.0)),
        (Weighted(1.0, [1]), Weighted(1.0, [2])),
        ([1.0, 2.0].count, [1.0, 3.0].count), (functools.cache(scaled), functools.cache(inner)),
        (kt.TorqueFunction(lambda t, q, qd: [1.0]), kt.TorqueFunction(lambda t, q, qd: [2.0])),
        (kt.load("planar_2r"), kt.load("planar_3r")), (lambda x: x.min(), lambda x: x.max()),
    ],
)  # fmt: skip
def test_different_values_have_different_identities(a, b):
    """Tell values, types, shapes, functions, their arguments and their objects apart."""
    assert digest(a) != digest(b)
    assert digest(a) == digest(a)


def test_equal_values_have_equal_identities():
    """Find the same identity for objects that are made twice, shared or not."""
    one = {"x": [1.0]}
    assert digest(one, one) == digest({"x": [1.0]}, {"x": [1.0]})
    assert digest(Plain(1.0).measure) == digest(Plain(1.0).measure)
    assert digest(functools.partial(scaled, by=0.3)) == digest(functools.partial(scaled, by=0.3))
    assert digest(kt.PD(3.0, 0.4, kt.Hold([0.1, 0.2]))) == digest(kt.PD(3.0, 0.4, kt.Hold([0.1, 0.2])))


def test_networks_have_an_identity():
    """Tell networks apart by their weights, in torch, whose pickled form differs each time, and in JAX."""
    torch = pytest.importorskip("torch")

    def network(seed):
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    assert digest(network(1)) == digest(network(1)) != digest(network(2))
    numbers = pytest.importorskip("jax.numpy")
    assert digest(numbers.ones(3)) == digest(numbers.ones(3)) != digest(numbers.zeros(3))


def test_closures_and_defaults_count():
    """Tell functions apart by the values that they enclose, and by their defaults."""
    made = [plus(1), plus(2), plus(1)]
    assert digest(made[0]) == digest(made[2]) != digest(made[1])
    given = [eval("lambda x, y=n: x + y", {"n": n}) for n in (1, 2)]
    assert digest(given[0]) != digest(given[1])
    managed = [contextlib.contextmanager(plus(n)) for n in (1, 2)]
    named = [functools.wraps(np.max)(plus(n)) for n in (1, 2)]
    assert digest(managed[0]) != digest(managed[1]) and digest(named[0]) != digest(named[1])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FACTOR", 3.0), ("TABLE", {"gain": [1.0, 3.0], "names": {"a", "b"}}), ("scaled", lambda x, by=2.0: x / by),
        ("inner", math.cos),
    ],
)  # fmt: skip
def test_what_a_function_reads_counts(name, value, monkeypatch):
    """Change a global, a table or a helper that a function reads, also from inside of a generator: another identity."""
    before = digest(helped)
    monkeypatch.setitem(globals(), name, value)
    assert digest(helped) != before
    monkeypatch.undo()
    assert digest(helped) == before


def test_methods_and_attributes_of_classes_count(monkeypatch):
    """Change a method, an attribute or a property of the class of an object: another identity."""
    one, whole = Plain(1.0), Weighted(2.0)
    before, called = digest(one.measure), digest(whole)
    assert digest(one.measure) == before  # although Python has noted the names of slots in the class
    for name, value in {"OFFSET": 0.4, "measure": lambda self, run: run, "doubled": property(lambda s: 3.0)}.items():
        method = one.measure
        monkeypatch.setattr(Plain, name, value)
        assert digest(method) != before, name
        monkeypatch.undo()
    monkeypatch.setitem(globals(), "scaled", abs)
    assert digest(whole) != called


def test_functions_that_call_each_other_have_an_identity(monkeypatch):
    """Follow a recursion once around."""
    before = digest(odd)
    assert before != digest(even)
    monkeypatch.setitem(globals(), "even", lambda n: n == 1)
    assert digest(odd) != before


MODULE = """
import helpers_of_measures as h
import kinetree, numpy as np

UNUSED = {unused}

def measure(run):
    return h.gain * np.abs(run)

def lazy(run):
    from helpers_of_measures import gain
    return gain * run

def whole(run):
    return getattr(h, "gain") * run
"""


def identities(folder, gain, unused):
    """Return the identities of functions of a module that reads another one, both imported from a folder."""
    folder.mkdir()
    (folder / "helpers_of_measures.py").write_text(f"gain = {gain}\n")
    (folder / "measures_of_user.py").write_text(MODULE.format(unused=unused))
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(folder)
        made = importlib.import_module("measures_of_user")
        found = [digest(f) for f in (made.measure, made.lazy, made.whole)]
        for name in ("helpers_of_measures", "measures_of_user"):
            del sys.modules[name]
    return found


def test_modules_of_the_user_count(tmp_path):
    """Change an attribute of an imported module that a function reads, or the file where it is read as a whole."""
    first = identities(tmp_path / "a", 1.5, 0)
    assert identities(tmp_path / "b", 1.5, 1) == first
    assert all(x != y for x, y in zip(identities(tmp_path / "c", 2.5, 0), first, strict=True))


SCRIPT = """
import functools, sys
sys.path.insert(0, {tests!r})
import kinetree as kt
import numpy as np
from kinetree._support.identity import digest

WORDS = {{"b", "a", "c", "d"}}
def f(run, names=frozenset({{"x", "y", "z"}})):
    return [w for w in WORDS if w in {{"p", "q", "r"}}] + [np.max(run), kt.rms("q.a")]
class C:
    words = WORDS
    def __call__(self, run):
        return f(run)
print(digest(f, C(), functools.partial(f, 1), C().__call__))
"""


def test_identities_are_the_same_in_every_process(tmp_path):
    """Hash sets and functions in processes with other seeds of hashes, as a script and as a module."""
    (tmp_path / "script.py").write_text(SCRIPT.format(tests=str(tmp_path)))
    said = set()
    for seed, command in (("1", ["script.py"]), ("2", ["script.py"]), ("3", ["-c", "import script"])):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True,
            env={"PYTHONPATH": ":".join(x for x in sys.path if x), "PYTHONHASHSEED": seed, "PATH": ""},
        )  # fmt: skip
        said.add(done.stdout)
    assert len(said) == 1


def test_what_has_no_content_is_refused(tmp_path):
    """Refuse files, locks and generators, and name what leads to them."""
    with open(tmp_path / "log", "w") as log:
        with pytest.raises(Unidentified, match="TextIOWrapper"):
            digest(log)
        with pytest.raises(Unidentified, match="TextIOWrapper") as wrong:
            digest({"x": lambda run: log.write("x")})
        assert wrong.value.path == ["the variable log of <lambda>", "'x'"]
    lock = threading.Lock()
    with pytest.raises(Unidentified, match="lock"):
        digest(Plain(lock))
    with pytest.raises(Unidentified, match="generator"):
        digest(x for x in range(3))
