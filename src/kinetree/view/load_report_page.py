"""A load report as one web page: summary, tables, charts, and a replay with force arrows, without network."""

from __future__ import annotations

from html import escape
from pathlib import Path

from ..reporting.report import LoadReport
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
from .report_parts import motion_data, motion_section, report_html, section, write_page

MOST_CARDS = 24
"""The most drives, bearings or elements that have charts; the tables have all."""


def save(report: LoadReport, path: str | Path = "report.html", *, title: str | None = None) -> Path:
    """Write a load report as one page that any browser opens offline, and return the file."""
    return write_page(path, report_page(report, title or f"Load report: {report.name}"))


def report_page(report: LoadReport, title: str) -> str:
    """Return the page as text."""
    lead = "Arrows show forces, double arrows torques. Choose an instant here, in a chart or in a table."
    return report_html(
        motion_data(report.run, _first_instant(report), share=report.share),
        title=title, subtitle=_subtitle(report), summary=_summary(report),
        motion=motion_section("The motion and its forces", lead, instant_list(report)),
        body="".join(_sections(report)),
    )  # fmt: skip


def load_report_html(report: LoadReport) -> str:
    """Return the summary and the tables of drives and bearings as HTML for notebooks."""
    words = "".join(f"<li>{escape(line)}</li>" for line in report.words)
    shown = [plain_table(report.tables[name]) for name in ("drives", "bearings") if name in report.tables]
    return f"<p><b>Load report: {escape(report.name)}</b></p><ul>{words}</ul>{''.join(shown)}"


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
        out.append(section("Drives", "What each motor or actuator must do.", drive_table(report)))
        out += [_drive_card(report, k) for k in range(min(len(report.driven), MOST_CARDS))]
        out += _left_out("drives", len(report.driven))
    if report.bearings:
        order = sorted(report.bearings, key=lambda b: -b.peaks["force"].value)
        charts = bearing_charts(order[:MOST_CARDS])
        lead = (
            "Forces that the parent exerts on the child at each joint (body a on body b at a loop), at the joint's "
            "origin, by the joint's axis."
        )
        out.append(section("Bearings", lead, bearing_table(report) + f'<div class="charts">{charts}</div>'))
        out += _left_out("bearings", len(report.bearings))
    if report.elements:
        charts = "".join(element_charts(e) for e in report.elements[:MOST_CARDS])
        content = element_table(report) + f'<div class="charts">{charts}</div>'
        out.append(section("Springs, dampers and linear actuators", "Forces between two points.", content))
        out += _left_out("elements", len(report.elements))
    out.append(section("Energy", "Where the work of the drives goes over the whole run.", energy_table(report)))
    out.append(section("What the words mean", "", glossary(report)))
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
