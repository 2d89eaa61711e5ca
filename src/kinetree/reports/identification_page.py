"""The report of an identification as one web page: residuals, torques of each joint, and all parameters."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from .._support.tables import cell_text
from ..analysis.identification.identified import Identification
from .page_parts import Curve, chart, report_html, section, table, write_page


def identification_report(found: Identification, path: str | Path) -> Path:
    """Write the report of an identification as a page, and return its path."""
    text, *findings, by_joint, by_parameter = found.display()
    assert not isinstance(by_joint, str)
    assert not isinstance(by_parameter, str)
    notes = "".join(f"<li>{escape(str(x))}</li>" for x in findings)
    cells = [[escape(cell_text(x)) for x in row] for row in by_joint.rows]
    summary = table(by_joint.labels, cells) + (f"<ul>{notes}</ul>" if notes else "")
    each = "".join(_charts(found, k) for k in range(len(found.joints)))
    charts = f'<div class="charts">{each}</div>'
    held = "the held-out data" if found.validation else "the data (none were held out)"
    base = table(by_parameter.labels, [[escape(cell_text(x)) for x in row] for row in by_parameter.rows])
    bodies = found.system.bodies
    rows = [
        [escape(b.name), *(cell_text(float(x)) for x in (b.mass, *b.com, *b.inertia)), cell_text(float(margin))]
        for b, margin in zip(bodies, found.margins, strict=True)
    ]
    heads = (
        "body",
        "mass [kg]",
        *(f"{x} [m]" for x in "xyz"),
        *(f"I{x} [kg m^2]" for x in ("xx", "yy", "zz", "xy", "yz", "zx")),
        "margin",
    )
    body = (
        section("Torques", f"Measured and predicted torques of {held}, and their difference.", charts)
        + section("Base parameters", "The combinations that the motion determines, with 95 % intervals.", base)
        + section(
            "Bodies",
            "Masses, centers of mass, and inertias about these; a margin above zero is possible.",
            table(heads, rows),
        )
    )
    page = report_html(
        None,
        title=f"Identification of {found.base.mechanism}",
        subtitle=str(text),
        summary=summary,
        motion="",
        body=body,
    )
    return write_page(path, page)


def _charts(found: Identification, k: int) -> str:
    """Return the charts of a joint: its torques, and their residuals."""
    joint, unit, fits = found.joints[k], found.units[k], found.validation or found.training
    t = np.concatenate([f.t for f in fits])
    measured, predicted = (
        np.concatenate([x[:, k] for x in part]) for part in ([f.measured for f in fits], [f.predicted for f in fits])
    )
    curves = [Curve(t, measured, "measured", "c0"), Curve(t, predicted, "predicted", "c1")]
    residual = [Curve(t, measured - predicted, "", "c2")]
    return chart(curves, title=f"torque of {joint}", ylabel=f"torque [{unit}]", over_time=False) + chart(
        residual, title=f"residual of {joint}", ylabel=f"residual [{unit}]", over_time=False
    )
