"""Flexible bodies from finite elements: a lattice of bars, reduced and compared with its whole matrices."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.linalg
import scipy.sparse

import everyday
import kinetree as kt
from kinetree.formats.toml import read_toml_text
from tolerance import assert_close

BAYS, PITCH, WIDTH, EA, MASS = 5, 0.3, 0.25, 2.0e5, 0.21


def lattice() -> dict[str, Any]:
    """Return a straight lattice of bars along x with triangular cells, clamped at its first cell."""
    corners = WIDTH * np.array([[0.0, 0.0], [1.0, 0.1], [0.3, 0.9]])
    x = np.array([[k * PITCH, *corner] for k in range(BAYS + 1) for corner in corners])
    K = np.zeros((3 * len(x), 3 * len(x)))
    for i, j in combinations(range(len(x)), 2):
        way = x[j] - x[i]
        length = float(np.linalg.norm(way))
        if j // 3 - i // 3 <= 1:
            block = EA / length**3 * np.outer(way, way)
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                K[3 * a : 3 * a + 3, 3 * b : 3 * b + 3] += sign * block
    masses = MASS * (1 + 0.1 * np.arange(len(x)))
    return {
        "places": x, "mass": np.diag(np.repeat(masses, 3)), "stiffness": K, "clamped": np.arange(3),
        "node_tip": np.arange(len(x) - 3, len(x)), "node_mid": np.arange(6, 9),
    }  # fmt: skip


def saved(folder: Path, **changes: Any) -> Path:
    """Return the file of the lattice with some arrays changed, or left out where they are None."""
    path = folder / "lattice.npz"
    arrays = lattice() | changes
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
    return path


def test_a_reduced_lattice(tmp_path):
    """Find mass, frequencies, and the deflection under a force and a moment at a node as in the whole lattice."""
    mesh, shape = lattice(), kt.ModalBody.read(saved(tmp_path), modes=20, damping=0.03)
    masses = np.diag(mesh["mass"])[::3]
    assert_close(shape.moments.m, masses.sum(), 1e-14 * masses.sum(), "mass")
    assert_close(shape.rigid["com"], masses @ mesh["places"] / masses.sum(), 1e-13, "center of mass")
    K, M = mesh["stiffness"][9:, 9:], mesh["mass"][9:, 9:]
    exact = np.sqrt(scipy.linalg.eigh(K, M, eigvals_only=True))
    modal = np.diag(np.array(shape.moments.K))
    found = np.sqrt(np.array(shape.stiffness) / modal)
    assert_close(found[:8] / exact[:8], np.ones(8), 1e-9, "frequencies")
    assert_close(np.array(shape.damping), 2 * 0.03 * found * modal, 1e-9 * modal.max() * found.max(), "damping")
    joints = [kt.Joint("root", "fixed", "ground", "b")]
    system = kt.System(kt.build_mechanism("b", [kt.Body("b", flexible=shape)], joints, gravity=(0.0, 0.0, 0.0)))
    names = [b.name for b in system.mechanism.bodies]
    w, force, moment = np.zeros((len(names), 6)), np.array([3.0, -2.0, 5.0]), np.array([0.4, 0.7, -0.3])
    w[names.index("b.tip")] = [*moment, *force]
    still = np.zeros(20)
    e = -system.inverse_dynamics(still, still, still, wrenches=w, forces=False) / np.array(shape.stiffness)
    tip = mesh["places"][-3:]
    r = tip - tip.mean(axis=0)
    spread = np.linalg.inv(np.sum(r * r) * np.eye(3) - r.T @ r)
    load = np.zeros((BAYS + 1, 3, 3))
    load[-1] = force / 3 + np.cross(spread @ moment, r)
    u = np.linalg.solve(K, load.reshape(-1)[9:]).reshape(-1, 3)[-3:]
    moved = system.pose(e, "b.tip")[:3, 3] - tip.mean(axis=0)
    assert_close(moved, u.mean(axis=0), 1e-9 * np.abs(u).max(), "deflection")
    angles = spread @ np.cross(r, u).sum(axis=0)
    R = system.pose(e, "b.tip")[:3, :3]
    assert_close([R[2, 1], R[0, 2], R[1, 0]], angles, 2 * np.abs(angles).max() ** 2, "rotation")


@everyday.long
def test_equations_are_those_of_lagrange(tmp_path):
    """Verify an arm with a lattice as a link."""
    shape = kt.ModalBody.read(saved(tmp_path), modes=13, damping=0.03)
    joints = [
        kt.Joint("j", "revolute", "ground", "b", axis=(0.3, 1.0, 0.2)),
        kt.Joint("k", "revolute", "b.tip", "load"),
    ]
    load = kt.Body("load", 2.0, (0.1, 0.0, 0.2), (0.02, 0.03, 0.04, 0.001, 0.002, 0.003))
    system = kt.System(kt.build_mechanism("arm", [kt.Body("b", flexible=shape), load], joints))
    found = system.verify(states=2, routes=["lagrange"])
    assert found, str(found)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"mass": None}, "there is no array 'mass'; save it beside clamped, node_mid"),
        ({"places": np.ones((18, 2))}, "places has shape (18, 2); give [n, 3]"),
        ({"mass": np.eye(9)}, "mass has shape (9, 9); give [54, 54]: x, y and z of each node in turn"),
        ({"mass": -np.eye(54)}, "node 0 has the mass -1 kg; give every node a mass"),
        ({"stiffness": np.triu(np.ones((54, 54)))}, "stiffness is not symmetric; save the whole matrix"),
        ({"stiffness": np.eye(54)}, "the stiffness resists rigid motions by 1 of its largest entry"),
        ({"clamped": np.array([0, 99])}, "clamped has entries that are no nodes; give whole numbers from 0 to 17"),
        ({"node_tip": np.array([0, 3, 6])}, "node_tip has 3 nodes on one line; give three or more that are not"),
        ({"places": np.full((18, 3), np.nan)}, "places has entries that are no finite numbers"),
    ],
)
def test_bad_files_are_refused(tmp_path, changes, text):
    """Refuse files with missing, misshapen or impossible arrays."""
    with pytest.raises(kt.ModelError) as error:
        kt.ModalBody.read(saved(tmp_path, **changes))
    assert text in str(error.value)


def test_bad_options_are_refused(tmp_path):
    """Refuse too few and too many modes, another mass, and files that are none."""
    path = saved(tmp_path)
    for modes in (11, 46):
        with pytest.raises(kt.ModelError, match=f"{modes} modes; give 12 to 45: six for each node"):
            kt.ModalBody.read(path, modes=modes)
    with pytest.raises(kt.ModelError, match=r"the mass of the mesh is 6\.993 kg, not 0\.006993 kg; save SI units"):
        kt.ModalBody.read(path, mass=0.006993)
    with pytest.raises(kt.ModelError, match="the file cannot be read"):
        kt.ModalBody.read(tmp_path / "none.npz")


def described(folder: Path, **changes: Any) -> Path:
    """Return the .toml file of the lattice with its matrices as Matrix Market; changes are of texts of files."""
    mesh = lattice()
    scipy.io.mmwrite(folder / "K.mtx", scipy.sparse.coo_array(mesh["stiffness"]), precision=17, symmetry="symmetric")
    scipy.io.mmwrite(folder / "M.mtx", mesh["mass"], precision=17, symmetry="general")
    rows = [",".join(map(repr, map(float, x))) for x in mesh["places"]]
    texts = {
        "nodes.csv": "\n".join(["x,y,z", *rows]) + "\n",
        "mesh.toml": 'mass = "M.mtx"\nstiffness = "K.mtx"\nnodes = "nodes.csv"\nclamped = [0, 1, 2]\n'
        "[groups]\ntip = [15, 16, 17]\nmid = [6, 7, 8]\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(changes.get(name, lambda x: x)(text), encoding="utf-8")
    if "K.mtx" in changes:
        (folder / "K.mtx").write_text(changes["K.mtx"]((folder / "K.mtx").read_text()), encoding="utf-8")
    return folder / "mesh.toml"


def test_matrix_market(tmp_path):
    """Read the same body from Matrix Market files, sparse as a triangle or dense, as from arrays."""
    body = kt.ModalBody.read(described(tmp_path), modes=14, damping=0.02, mass=6.993)
    same = kt.ModalBody.read(saved(tmp_path), modes=14, damping=0.02)
    assert (body.names, {n.name for n in body.nodes}) == (same.names, {"tip", "mid"})
    assert_close(body.stiffness, same.stiffness, 1e-9 * max(same.stiffness), "stiffness")
    assert_close(body.node("tip").x, same.node("tip").x, 0.0, "tip")
    assert_close(body.moments.m, same.moments.m, 1e-14 * same.moments.m, "mass")


def swap(old: str, new: str):
    """Return a change of a text."""
    return lambda text: text.replace(old, new)


@pytest.mark.parametrize(
    ("file", "change", "text"),
    [
        ("mesh.toml", swap('"M.mtx"', '"../M.mtx"'), "mass: '../M.mtx' is not in the folder of the file that names it"),
        ("mesh.toml", swap('"M.mtx"', '"/etc/M.mtx"'), "mass: '/etc/M.mtx' is not in the folder of the file"),
        ("mesh.toml", swap('"M.mtx"', '"no.mtx"'), "mass: there is no file 'no.mtx'; put it into"),
        ("mesh.toml", swap('"M.mtx"', "7"), "mass: 7 is no .mtx file; give the name of one"),
        ("mesh.toml", swap("nodes.csv", "nodes.npz"), "nodes: 'nodes.npz' is no .csv file"),
        ("mesh.toml", swap("stiffness", "stifness"), "there is a key 'stifness'; give nodes, mass, stiffness, clamped"),
        ("mesh.toml", swap('nodes = "nodes.csv"', ""), "there is no key 'nodes'"),
        ("mesh.toml", swap("[0, 1, 2]", "[0, 1, true]"), "clamped is no list of nodes; give their numbers"),
        ("mesh.toml", swap("[0, 1, 2]", "[0, 1, 18]"), "clamped has entries that are no nodes"),
        ("mesh.toml", swap("mass =", "mass"), "the file cannot be read (Expected '='"),
        ("nodes.csv", swap("x,y,z", "x;y;z"), "nodes.csv: the first line is not x,y,z; give these headings"),
        ("nodes.csv", swap("0.0,0.0,0.0", "0.0,zero,0.0"), "nodes.csv:2: '0.0,zero,0.0' is no place"),
        ("nodes.csv", lambda x: x + "1,2,3\n", "the matrix is [54, 54] with 2916 entries; give [57, 57]"),
        ("K.mtx", swap("coordinate real", "coordinate complex"), "its entries are complex; save real numbers"),
        ("K.mtx", lambda x: x[:200], "K.mtx: the file cannot be read ("),
        ("K.mtx", lambda x: x[60:], "give a Matrix Market file, as of scipy.io.mmwrite"),
    ],
)
def test_bad_matrix_market_is_refused(tmp_path, file, change, text):
    """Refuse descriptions, places and matrices that are damaged, of another size, or elsewhere."""
    with pytest.raises(kt.ModelError) as error:
        kt.ModalBody.read(described(tmp_path, **{file: change}))
    assert text in str(error.value)


def test_places_are_text(tmp_path):
    """Refuse places that are no text."""
    path = described(tmp_path)
    (tmp_path / "nodes.csv").write_bytes(b"x,y,z\n\xff\xfe\n")
    with pytest.raises(kt.ModelError, match=r"nodes\.csv: the file cannot be read \(.*\); give a CSV file in UTF-8"):
        kt.ModalBody.read(path)


def test_links_do_not_lead_out(tmp_path):
    """Refuse a matrix that is a symbolic link to a file elsewhere."""
    inner = tmp_path / "inner"
    inner.mkdir()
    path = described(inner)
    (inner / "M.mtx").rename(tmp_path / "M.mtx")
    (inner / "M.mtx").symlink_to(tmp_path / "M.mtx")
    with pytest.raises(kt.ModelError, match=r"'M\.mtx' is not in the folder"):
        kt.ModalBody.read(path)


@everyday.long
def test_unpacked_sizes_are_bounded(tmp_path):
    """Refuse a small .npz file of enormous zeros, and a file that is no archive."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed, packed.open("mass.npy", "w") as part:
        for _ in range(60):
            part.write(bytes(10_000_000))
    with pytest.raises(kt.ModelError, match=r"its arrays have 600,000,000 bytes; give at most 2000 nodes"):
        kt.ModalBody.read(path)
    path.write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(kt.ModelError, match="the file cannot be read"):
        kt.ModalBody.read(path)


ARM = """
[mechanism]
name = "arm"
[[body]]
name = "boom"
[body.flexible]
{}
[[joint]]
name = "j"
kind = "revolute"
parent = "ground"
child = "boom"
axis = "y"
"""


def arm_of(folder: Path, lines: str) -> kt.System:
    """Return the arm of a TOML file whose boom is given by some lines."""
    (folder / "arm.toml").write_text(ARM.format(lines), encoding="utf-8")
    return kt.load(folder / "arm.toml")


@pytest.mark.parametrize("make", [saved, described])
def test_toml_names_the_file(tmp_path, make):
    """Read a body from the file that a mechanism names; save it without the file, and read the same one back."""
    name = make(tmp_path).name
    arm = arm_of(tmp_path, f'file = "{name}"\nmodes = 13\ndamping = 0.03\nmass = 6.993')
    shape = kt.ModalBody.read(tmp_path / name, modes=13, damping=0.03)
    built = kt.build_mechanism(
        "arm", [kt.Body("boom", flexible=shape)], [kt.Joint("j", "revolute", "ground", "boom", axis=(0.0, 1.0, 0.0))]
    )
    elastic = {b.name: b for b in arm.mechanism.bodies}["boom.elastic"].flexible
    assert elastic == shape == {b.name: b for b in built.bodies}["boom.elastic"].flexible
    other = tmp_path / "other"
    other.mkdir()
    kt.save(arm, other / "arm.toml")
    again = kt.load(other / "arm.toml")
    assert again.mechanism.hash == arm.mechanism.hash and again.mechanism.bodies == arm.mechanism.bodies
    run = kt.simulate(arm, arm.neutral(), duration=0.01)
    run.save(other / "run.npz")
    assert kt.read_trajectory(other / "run.npz").system.mechanism.bodies == arm.mechanism.bodies


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ('file = "../lattice.npz"', "body 'boom', flexible, file: '../lattice.npz' is not in the folder of the file"),
        ('file = "none.npz"', "body 'boom', flexible, file: there is no file 'none.npz'"),
        ('file = "lattice.pkl"', "file: 'lattice.pkl' is no .npz or .toml file"),
        ('file = "lattice.npz"\nmodes = 11', "11 modes; give 12 to 45"),
        ('file = "lattice.npz"\nmass = 1.0', "the mass of the mesh is 6.993 kg, not 1 kg"),
        ('file = "lattice.npz"\nlength = 1.0', "'length'"),
        ('names = ["a", "a"]', "flexible, names: the names are not different words"),
        ('names = ["a"]\nstiffness = [2.0]\ndamping = [0.0]\nvalid = [0.0]', "valid: valid has an entry 0.0"),
        ('names = ["a"]\nstiffness = [2.0, 3.0]', "stiffness: a list of 2 items where 1 belong; give [1]"),
        ('names = ["a"]\nstiffness = ["2"]', "stiffness: '2' is no finite number"),
        ('names = ["a"]\nstiffness = [nan]', "stiffness: 'nan' is no finite number"),
    ],
)
def test_bad_toml_is_refused(tmp_path, lines, text):
    """Refuse files elsewhere, files that are none, other keys, and numbers of other shapes."""
    saved(tmp_path)
    with pytest.raises(kt.ModelError) as error:
        arm_of(tmp_path, lines)
    assert text in str(error.value)


@pytest.mark.parametrize(
    "moments",
    [
        "{ m = 2.0 }",
        "{ m = -2.0, K = [[0.5]] }",
        "{ m = 2.0, K = [[-0.5]] }",
        "{ m = 2.0, K = [[0.5]], p = [[1.1, 0.0, 0.0]] }",  # more than all of the mass moves
        "{ m = 2.0, K = [[0.5]], mc = [0.7, 0.0, 0.0] }",  # far from the origin, without inertia
    ],
)
def test_impossible_moments_are_refused(tmp_path, moments):
    """Refuse numbers whose mass matrix is not positive; the numbers of one point are possible."""
    head = 'names = ["a"]\nstiffness = [2.0]\ndamping = [0.1]\nvalid = [0.1]\nmoments = '
    assert arm_of(tmp_path, head + "{ m = 2.0, K = [[0.5]], p = [[1.0, 0.0, 0.0]] }").nv == 2
    with pytest.raises(kt.ModelError, match="the mass matrix at rest is not that of any points"):
        arm_of(tmp_path, head + moments)


def test_texts_name_no_files():
    """Refuse a file in a text, which has no folder."""
    with pytest.raises(kt.ModelError, match="a text has no folder in which files of finite elements are"):
        read_toml_text(ARM.format('file = "lattice.npz"'))


WORDS = [b"nan", b"1e400", b"inf", b"-", b"1_000", b"\xff\xfe", b"\xd9\xa3", b"[[", b"999999999", b"true", b"-1", b"\0"]
"""What damaged files contain: numbers that are none, other digits, and brackets."""


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with pieces that are cut, repeated or replaced."""
    for _ in range(rng.integers(1, 4)):
        a, b = sorted(rng.integers(0, len(data) + 1, 2))
        word = WORDS[rng.integers(len(WORDS))]
        match rng.integers(5):
            case 0:
                data = data[:a]
            case 1:
                data = data[:a] + data[b:]
            case 2:
                data = data[:a] + data[a : a + 200] + data[a:]
            case 3:
                data = data[:a] + word + data[a + rng.integers(0, 6) :]
            case _:
                lines = data.split(b"\n")
                lines[rng.integers(len(lines))] = word
                data = b"\n".join(lines)
    return data


@pytest.mark.parametrize("name", ["lattice.npz", "K.mtx", "nodes.csv", "mesh.toml"])
def test_damaged_files_give_a_body_or_an_error(tmp_path, name):
    """Damage a file 100 times, and get a body or a ModelError only."""
    path, whole = saved(tmp_path), described(tmp_path)
    path = path if name == path.name else whole
    good, rng = (tmp_path / name).read_bytes(), np.random.default_rng(len(name))
    for _ in range(100):
        (tmp_path / name).write_bytes(damaged(good, rng))
        try:
            body = kt.ModalBody.read(path, modes=14)
        except kt.ModelError as error:
            assert error.remedy
        else:
            assert np.all(np.isfinite(body.stiffness))


def test_damaged_numbers_of_a_body_give_a_body_or_an_error(tmp_path):
    """Damage the table of a body in a mechanism 200 times, and get a mechanism or a ModelError only."""
    shape = kt.ModalBody.read(saved(tmp_path), modes=12)
    soft = kt.Beam(1.0, EI=2.0, mass_per_length=0.3, modes=(2, 1)).modal
    for body in (shape, soft):
        built = kt.build_mechanism("arm", [kt.Body("b", flexible=body)], [kt.Joint("j", "revolute", "ground", "b")])
        kt.save(kt.System(built), tmp_path / "arm.toml")
        good, rng = (tmp_path / "arm.toml").read_bytes(), np.random.default_rng(7)
        for _ in range(100):
            try:
                mechanism, _ = read_toml_text(damaged(good, rng).decode("utf-8", "replace"), file="arm.toml")
            except kt.ModelError as error:
                assert error.remedy
            else:
                assert mechanism.hash


@everyday.long
def test_a_body_without_valid_deflections(tmp_path):
    """Simulate, save and report a body that states no largest deflections."""
    shape = replace(kt.ModalBody.read(saved(tmp_path), modes=13, damping=0.03), valid=())
    joint = kt.Joint("j", "revolute", "ground", "b", axis=(0.0, 1.0, 0.0))
    arm = kt.System(kt.build_mechanism("arm", [kt.Body("b", flexible=shape)], [joint]))
    kt.save(arm, tmp_path / "arm.toml")
    again = kt.load(tmp_path / "arm.toml")
    assert again.mechanism.hash == arm.mechanism.hash
    report = kt.load_report(kt.simulate(again, times=np.linspace(0.0, 0.01, 5)))
    assert [x.name for x in report.deflections] == ["b.tip", "b.mid"] and report.deflections[0].part is None
    assert "largest valid" not in "\n".join(report.words) and "b.tip" in report.table("deflections")
