"""A load report as one web page: summary, tables, charts, and a replay with force arrows, without network."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from pathlib import Path

from ..reporting.report import LoadReport
from ..results.files.atomic import replacing
from .load_report_charts import bearing_charts, drive_charts, element_charts
from .load_report_tables import (
    bearing_table,
    candidate_table,
    drive_table,
    element_table,
    energy_table,
    glossary,
    instant_list,
    plain_table,
)
from .replay import SCRIPTS, filled, replay_data, texts

MOST_CARDS = 24
"""The most drives, bearings or elements that have charts; the tables have all."""
FRAMES = 360
"""The number of frames of the replay in the page, and the most and fewest frames per second."""
SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
"""The speeds of the player, from which the page chooses one."""
SHOWN_FOR = 4.0
"""The least time that the replay takes at its first speed, if a slower one exists [s]."""


def save(report: LoadReport, path: str | Path = "report.html", *, title: str | None = None) -> Path:
    """Write a load report as one page that any browser opens offline, and return the file."""
    path = Path(path)
    page = report_page(report, title or f"Load report: {report.name}")
    with replacing(path) as written:
        written.write_text(page, encoding="utf-8")
    return path


def report_page(report: LoadReport, title: str) -> str:
    """Return the page as text."""
    data = replay_data(report.run, _fps(report), True, report.share)
    data |= {"embedded": True, "at": _first_instant(report), "speed": f"{_speed(report):g}"}
    view = files("kinetree.view")
    script = texts(view / "replay_page", SCRIPTS) + "\n" + texts(view / "report_page", ["report.js"])
    style = texts(view / "replay_page", ["stage.css"]) + texts(view / "report_page", ["report.css"])
    return filled(
        view / "report_page" / "page.html", script, style, data,
        TITLE=escape(title), SUBTITLE=escape(_subtitle(report)), SUMMARY=_summary(report),
        INSTANTS=instant_list(report), BODY="".join(_sections(report)),
    )  # fmt: skip


def load_report_html(report: LoadReport) -> str:
    """Return the summary and the tables of drives and bearings as HTML for notebooks."""
    words = "".join(f"<li>{escape(line)}</li>" for line in report.words)
    shown = [plain_table(report.tables[name]) for name in ("drives", "bearings") if name in report.tables]
    return f"<p><b>Load report: {escape(report.name)}</b></p><ul>{words}</ul>{''.join(shown)}"


def _fps(report: LoadReport) -> float:
    """Return frames per second that show short runs in detail and keep long ones small."""
    span = float(report.t[-1] - report.t[0])
    return min(1000.0, max(5.0, FRAMES / span)) if span > 0 else 60.0


def _speed(report: LoadReport) -> float:
    span = float(report.t[-1] - report.t[0])
    slow = [speed for speed in SPEEDS if span / speed >= SHOWN_FOR]
    return min(1.0, max(slow, default=SPEEDS[0]))


def _first_instant(report: LoadReport) -> float:
    """Return the instant that the page shows first: that of the peak of the strongest drive, or of a bearing."""
    if report.driven:
        return max(report.driven, key=lambda d: max(d.peak_power.value, d.peak_braking.value)).peak.t
    if report.bearings:
        return max((b.peaks["force"] for b in report.bearings), key=lambda x: x.value).t
    return float(report.t[0])


def _subtitle(report: LoadReport) -> str:
    run = report.run
    span = f"{run.t[0]:.4g} to {run.t[-1]:.4g} s"
    return f"{run.method}, {span}, {len(run):,} samples, {run.status}"


def _summary(report: LoadReport) -> str:
    """Return the summary as a list, with the names of drives at the beginning of a line in bold."""
    names = tuple(d.name for d in report.driven)
    lines = []
    for line in (*report.words, *report.notes):
        name = next((x for x in names if line.startswith(f"{x} needs ")), "")
        lines.append(f"<li><b>{escape(name)}</b>{escape(line[len(name) :])}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def _sections(report: LoadReport) -> list[str]:
    """Return the sections below the replay."""
    out = []
    if report.drives:
        out.append(_section("Drives", "What each motor or actuator must do.", drive_table(report)))
        out += [_drive_card(report, k) for k in range(min(len(report.driven), MOST_CARDS))]
        out += _left_out("drives", len(report.driven))
    if report.bearings:
        order = sorted(report.bearings, key=lambda b: -b.peaks["force"].value)
        charts = bearing_charts(order[:MOST_CARDS])
        lead = (
            "Forces that the parent exerts on the child at each joint (body a on body b at a loop), at the joint's "
            "origin, by the joint's axis."
        )
        out.append(_section("Bearings", lead, bearing_table(report) + f'<div class="charts">{charts}</div>'))
        out += _left_out("bearings", len(report.bearings))
    if report.elements:
        charts = "".join(element_charts(e) for e in report.elements[:MOST_CARDS])
        content = element_table(report) + f'<div class="charts">{charts}</div>'
        out.append(_section("Springs, dampers and linear actuators", "Forces between two points.", content))
        out += _left_out("elements", len(report.elements))
    out.append(_section("Energy", "Where the work of the drives goes over the whole run.", energy_table(report)))
    out.append(_section("What the words mean", "", glossary(report)))
    return out


def _drive_card(report: LoadReport, k: int) -> str:
    drive = report.driven[k]
    ranked = candidate_table(report, drive.name) if report.catalogue is not None else ""
    charts = f'<div class="charts">{drive_charts(report, drive)}{ranked}</div>'
    return f'<section class="card"><h3>Drive {escape(drive.name)}</h3>{charts}</section>'


def _left_out(what: str, number: int) -> list[str]:
    if number <= MOST_CARDS:
        return []
    return [f"<p>Charts of {number - MOST_CARDS} more {what} are left out; choose joints to see them.</p>"]


def _section(title: str, lead: str, content: str) -> str:
    intro = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    return f"<section><h2>{escape(title)}</h2>{intro}{content}</section>"
