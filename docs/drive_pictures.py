"""Make the picture of docs/drives.md: a quick move of an arm with elastic joints, and the heat of its motor.

Run it with `python docs/drive_pictures.py`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

FILE = Path(__file__).parent / "pictures" / "drives.png"
MOTOR = {
    "torque_constant": 0.08, "resistance": 0.6, "inductance": 3e-4, "gear": 160.0, "efficiency": 0.85, "friction": 5e-3,
    "current": 20.0, "voltage": 48.0, "thermal_resistances": (1.2, 3.1), "thermal_times": (25.0, 700.0),
}  # fmt: skip


def main() -> None:
    """Write the picture."""
    arm = kt.load("kuka_lwr4_elastic")
    arm = kt.with_motors(arm, kt.Motor("shoulder", "joint2", **MOTOR))
    low, high = np.array([0.0, 1.4, 0.0, -0.6, 0.0, 0.4, 0.0]), np.array([0.0, 0.7, 0.0, -0.2, 0.0, 0.2, 0.0])
    track = kt.AtMotors(kt.ComputedTorque(900.0, 60.0, kt.Cycloid(low, high, 0.35)))
    run = kt.simulate(arm, kt.elastic_start(arm, low), duration=2.5, control=kt.MotorControl(track), rtol=1e-8)
    load = kt.load_report(run).motor("shoulder")
    shown = run.t <= 1.0
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    for name in ("joint2", "joint4"):
        twist = run[f"q.{name}.motor"] - run[f"q.{name}"]
        left.plot(run.t[shown], 1e3 * twist[shown], lw=1.2, label=name)
    left.set(xlabel="t [s]", ylabel="twist [mrad]", title="springs of the KUKA in a move of 0.35 s")
    left.legend(fontsize=8)
    right.plot(run.t[shown], load.current[shown], color="#4477aa", lw=1.2, label="current [A]")
    right.plot(run.t[shown], load.voltage[shown], color="#ccbb44", lw=1.2, label="voltage [V]")
    right.set(xlabel="t [s]", title=f"motor of joint2; every 2.5 s it reaches {load.hot:.0f} C")
    right.legend(fontsize=8)
    figure.savefig(FILE, dpi=110)
    print(load)


if __name__ == "__main__":
    main()
