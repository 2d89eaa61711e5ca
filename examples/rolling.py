"""Rolling: a wobbling disc with its constants of motion, and three mobile bases, each drawn as a picture.

python examples/rolling.py [FOLDER] writes the pictures of docs/rolling.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import kinetree as kt
from kinetree.plots.figures import COLORS, INK, STYLE

MASS, RADIUS = 2.0, 0.4
AXIAL, DIAMETRAL = MASS * RADIUS**2 / 2, MASS * RADIUS**2 / 4


def disc() -> kt.System:
    """Return a thin disc that rolls on the floor."""
    body = kt.Body("disc", MASS, inertia=(DIAMETRAL, AXIAL, DIAMETRAL, 0.0, 0.0, 0.0))
    floor = kt.Loop("floor", "rolling_disc", kt.GROUND, "disc", axis="z", axis2="y", radius=RADIUS)
    joint = kt.Joint("base", "free", kt.GROUND, "disc")
    guess = {"base": (0.0, 0.0, RADIUS, 0.0, 0.0, 0.0, 1.0)}
    return kt.System(kt.build_mechanism("disc", [body], [joint], loops=[floor], guess=guess))


def wobbling() -> kt.Trajectory:
    """Simulate a disc that starts tilted by 20 degrees."""
    system, tilt = disc(), np.deg2rad(20)
    q0 = system.assemble([0.0, 0.0, RADIUS, np.sin(tilt / 2), 0.0, 0.0, np.cos(tilt / 2)])
    qd0 = system.consistent_speeds(q0, {"base.wx": 0.3, "base.wy": 5.0, "base.wz": 1.0})
    return kt.simulate(system, q0, qd0, duration=6.0, method="dop853", rtol=1e-12, atol=1e-13)


def constants(run: kt.Trajectory) -> np.ndarray:
    """Return the two linear integrals of Appell and Korteweg at all samples (docs/theory/rolling.md)."""
    R = run["poses"][:, 0, :3, :3]
    s, omega = R[:, :, 1], np.einsum("kij,kj->ki", R, run.qd[:, :3])
    sine = np.hypot(s[:, 0], s[:, 1])
    ahead = np.cross(s, [0.0, 0.0, 1.0]) / sine[:, None]
    spin, up = np.einsum("ki,ki->k", omega, s), np.einsum("ki,ki->k", omega, np.cross(ahead, s))
    share = MASS * RADIUS**2 / (AXIAL + MASS * RADIUS**2)
    out = []
    for c, k, x, y in zip(s[:, 2], sine, spin, up, strict=True):
        (p, dp), (m, dm) = _legendre(c), _legendre(-c)
        out.append(np.linalg.solve([[p, m], [-k * dp / share, k * dm / share]], [x, y]))
    return np.array(out)


def _legendre(x: float) -> tuple[float, float]:
    """Return the function of Legendre that is regular at 1, with n (n + 1) = -K, and its derivative."""
    K = MASS * RADIUS**2 * AXIAL / (DIAMETRAL * (AXIAL + MASS * RADIUS**2))
    y, n, term, total, slope = (1.0 - x) / 2.0, 0, 1.0, 0.0, 0.0
    while n * term > 1e-17 * slope or n < 3:
        total, slope = total + term, slope + n * term / y
        term *= (K + n + n * n) / (n + 1.0) ** 2 * y
        n += 1
    return total, -0.5 * slope


def bases() -> dict[str, kt.Trajectory]:
    """Simulate the mobile bases of the library with some of their wheels driven at constant rates."""
    r, s, x, y, w = 0.076, (0.47 + 0.44) / 2, 0.5, 0.3, 0.35
    rates = {
        "differential_drive": {"left": 4.0, "right": 5.5},
        "car": {"rear_right": 15.0, "steering": 0.07},
        "mecanum_base": {
            "front_left": (x - y - s * w) / r, "front_right": (x + y + s * w) / r, "rear_left": (x + y - s * w) / r,
        },
    }  # fmt: skip
    out = {}
    for name, given in rates.items():
        system = kt.load(name)
        q0 = system.assemble()
        drives = kt.Driven({joint: kt.Hold(speed=rate) for joint, rate in given.items()})
        start = system.consistent_speeds(q0, given)
        out[name] = kt.simulate(system, q0, start, duration=8.0, control=drives, rtol=1e-9, atol=1e-10)
    return out


def draw_disc(path: Path) -> None:
    """Draw the path of a wobbling disc, and the errors of its constants of motion."""
    import matplotlib.pyplot as plt

    run = wobbling()
    R = run["poses"][:, 0, :3, :3]
    s = R[:, :, 1]
    flat = np.hypot(s[:, 0], s[:, 1])
    contact = run.q[:, :2] + RADIUS * (s[:, 2] / flat)[:, None] * s[:, :2]
    with plt.rc_context(STYLE):
        figure, (above, errors) = plt.subplots(1, 2, figsize=(10, 4.2))
        above.plot(*run.q[:, :2].T, color=COLORS[0], label="center")
        above.plot(*contact.T, color=COLORS[1], ls="--", lw=1, label="contact")
        above.set(xlabel="x [m]", ylabel="y [m]", title="Path, from above", aspect="equal")
        energy = run["energy"]
        c = constants(run)
        for k in range(2):
            errors.semilogy(
                run.t, np.abs(c[:, k] - c[0, k]) + 1e-17, color=COLORS[k], lw=0.8, label=f"integral {k + 1} [rad/s]"
            )
        errors.semilogy(run.t, np.abs(energy - energy[0]) + 1e-17, color=COLORS[2], lw=0.8, label="energy [J]")
        errors.set(xlabel="t [s]", title="Change of the constants of motion", ylim=(1e-16, 1e-8))
        above.legend()
        errors.legend()
        figure.tight_layout()
        figure.savefig(path, dpi=110)


def draw_bases(path: Path) -> None:
    """Draw the paths of the three bases with their headings."""
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(11, 3.8))
        for at, (name, run) in zip(axes, bases().items(), strict=True):
            at.plot(*run.q[:, :2].T, color=COLORS[0])
            pick = np.linspace(0, len(run.t) - 1, 9).astype(int)
            heading = run["poses"][pick, 0, :2, 0]
            at.quiver(*run.q[pick, :2].T, *heading.T, color=COLORS[1], width=0.01, scale=10, zorder=3)
            at.set(title=name, xlabel="x [m]", ylabel="y [m]", aspect="equal")
            at.margins(0.15)
        figure.tight_layout()
        figure.savefig(path, dpi=110)


def draw_bicycle(path: Path) -> None:
    """Draw the eigenvalues of the benchmark bicycle over its speed, and its motion after a push at 5 m/s."""
    import matplotlib.pyplot as plt

    system = kt.load("bicycle")
    q, speeds, rows = system.assemble(), np.linspace(0.0, 10.0, 101), []
    for speed in speeds:
        qd = system.consistent_speeds(q, {"base.vx": speed, "base.wx": 0.0, "steering": 0.0})
        values = np.linalg.eigvals(system.linearize(q, qd, np.zeros(system.nv)).A)
        rows.append(sorted(values, key=abs)[-4:])
    found = np.array(rows)
    qd = system.consistent_speeds(q, {"base.vx": 5.0, "base.wx": 0.4, "steering": 0.0})
    run = kt.simulate(system, q, qd, duration=6.0, rtol=1e-10, atol=1e-12)
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
        left.axvspan(4.292, 6.024, color=COLORS[2], alpha=0.15)
        left.plot(speeds, found.real, ".", color=COLORS[0], ms=3)
        left.plot(speeds, np.abs(found.imag), ".", color=COLORS[1], ms=1.5)
        left.axhline(0.0, color=INK, lw=0.8)
        left.set(
            xlabel="speed [m/s]", ylabel="eigenvalues [1/s]", ylim=(-10, 10), title="Real (blue), imaginary parts (red)"
        )
        right.plot(run.t, np.arcsin(run["poses"][:, 0, 2, 1]), color=COLORS[0], label="lean [rad]")
        right.plot(run.t, run.q[:, 8], color=COLORS[1], label="steering [rad]")
        right.set(xlabel="t [s]", title="After a push at 5 m/s")
        right.legend()
        figure.tight_layout()
        figure.savefig(path, dpi=110)


def main(folder: Path) -> None:
    """Write all pictures into a folder, and print their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw, name in ((draw_disc, "disc"), (draw_bases, "bases"), (draw_bicycle, "bicycle")):
        draw(folder / f"rolling-{name}.png")
        print(folder / f"rolling-{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/rolling"))
