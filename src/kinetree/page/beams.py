"""Beams of a page: what every modal coordinate adds along the beam of a body, at places from its joint to its end.

Deflections, moments, shear and strains are sums over the modal coordinates, so that a page shows them for any state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..analysis.beam_loads import beam_loads
from ..model.beams import Beam
from ..model.free_beams import FreeBeam
from ..results.trajectory import Trajectory

PLACES = 25
"""The places along a beam, of equal distances."""
ROUND = ("circle", "tube")
"""The sections whose strain depends on the whole bending, and not on its parts along y and along z."""


def page_beams(start: Trajectory) -> list[dict[str, Any]]:
    """Return the beams of a mechanism at its first state; bodies from finite elements have none."""
    system = start.system
    mechanism = system.mechanism
    bodies = [body.name for body in mechanism.bodies]
    given = {} if start.parameters is None else {"parameters": np.ravel(start.parameters)}
    out = []
    for k, body in enumerate(mechanism.bodies):
        flexible: Any = body.flexible
        if not isinstance(flexible, Beam | FreeBeam):
            continue
        name, own = body.name.removesuffix(".elastic"), mechanism.q_slices[k]
        units = np.zeros((own.stop - own.start, mechanism.nq))
        units[:, own] = np.eye(len(units))
        loads = beam_loads(system, units, name, count=PLACES, **given)
        beam = flexible if isinstance(flexible, Beam) else flexible.beam
        strains: dict[str, Any] = {}
        if loads.strain is not None:  # of a single mode: of one side and of one sign
            strains["bend"] = (loads.strain[..., None] * np.sign(loads.moment)).astype(np.float32)
            strains["stretch"] = (loads.strain * np.sign(loads.tension)).astype(np.float32)
            strains["round"] = beam.section[0] in ROUND if beam.section else False
        out.append({
            "name": name,
            "body": bodies.index(name),
            "parts": [i for i, other in enumerate(bodies) if other == name or other.startswith(f"{name}.")],
            "q": own.start,
            "modes": len(units),
            "x": np.asarray(loads.x, dtype=np.float64).ravel()[-PLACES:],
            **{field: getattr(loads, field).astype(np.float32) for field in ("deflection", "moment", "shear")},
            **strains,
        })  # fmt: skip
    return out
