"""Live pages of the site: lessons and mechanisms of the library, written while the site is built.

A page `lessons/NAME.md` gets the steps of its lesson at the mark `<!-- lesson -->`, and the first page a live mechanism
and a gallery at `<!-- live -->` and `<!-- gallery -->`. `<!-- walk NAME -->` becomes the page of a robot that walks.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from importlib.resources import files as package_files
from pathlib import PurePosixPath
from typing import Any

from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

import kinetree as kt
from kinetree.apps import lessons
from kinetree.apps.lessons.answers import answers
from kinetree.apps.lessons.reading import Lesson
from kinetree.apps.walking import legged

FIRST = "puma560"
"""The mechanism of the first page."""
POSES = {
    "puma560": [0.6, -0.7, 0.4, 0.3, 0.9, 0],
    "stanford": [0.5, 1.1, 0.3, 0.2, 0.6, 0],
    "kuka_lwr4": [0.4, 0.7, 0.3, -1.1, 0.2, 0.8, 0],
    "spatial_biped": [-0.2089, 0.0, 0.741, -0.5321, -1.5708, 3.1416, 0.0, -1.5708, -0.2089, 0.741, 0.0, -0.5321],
}
"""First positions of arms that are straight otherwise."""
GALLERY = {
    "puma560": "PUMA 560 arm",
    "stanford": "Stanford arm",
    "kuka_lwr4": "KUKA LWR 4+ arm",
    "space_robot_dual_arm": "Space robot with two arms",
    "spatial_biped": "Biped on one foot",
    "quadruped": "Quadruped",
    "hexapod": "Hexapod",
    "four_bar": "Four-bar linkage",
    "slider_crank": "Slider-crank",
    "press": "Crank press with free parameters",
    "three_rrr": "3-RRR parallel robot",
    "stewart": "Stewart platform",
    "gripper": "Gripper",
    "crank_rocker": "Crank-rocker",
    "cam_follower": "Cam and follower",
    "flexible_arm": "Flexible arm",
    "bicycle": "Bicycle",
    "mecanum_base": "Mecanum base",
    "charmie": "CHARMIE, a domestic robot",
    "chain_20": "Chain of twenty links",
}
"""Mechanisms with live pages, and their titles."""
EXAMPLES = {
    "ropes.md": ("pictures/ropes-net.png", "Ropes of 100,000 links"),
    "gaits.md": ("pictures/gaits-robots.png", "Robots that walk, and passive walkers"),
    "contact.md": ("pictures/contact-coin.png", "Coins that roll and fall: hard contact"),
    "cams.md": ("pictures/cams-gears.png", "Gears of variable ratio"),
    "load-report.md": ("pictures/load-report.png", "Load reports of drives and bearings"),
    "gpu.md": ("pictures/million-arms.png", "A million arms on a GPU"),
}
"""Pages of the site with examples: a picture and a title."""
WALKS = {
    "quadruped": (legged.quadruped, legged.TROT, 1e-3),
    "hexapod": (legged.hexapod, legged.TRIPOD, 1e-3),
    "planar_biped": (legged.planar_biped, legged.WALK, 2.5e-4),
}
"""Robots with a page of a run: the robot, its gait and the time step [s]."""
HEIGHT = {"live": 640, "lesson": 700}
"""Of embedded pages [px]."""


@lru_cache
def live_page(name: str) -> str:
    """Return the page of a mechanism of the library."""
    return kt.load(name).page(q=POSES.get(name)).text


@lru_cache
def walk_page(name: str) -> str:
    """Return the page of four cycles of a robot that walks."""
    make, gait, dt = WALKS[name]
    return make().walk(gait, cycles=4, dt=dt, samples=60).page(arrows=True).text


@lru_cache
def lesson_page(name: str) -> str:
    """Return the page of a lesson."""
    return kt.lesson(name).text


def on_files(files: Any, config: Any) -> Any:
    """Add live pages, lessons and pictures of the library to the site (called by mkdocs)."""
    pictures = package_files("kinetree.apps.studio") / "pictures"
    for name in GALLERY:
        files.append(File.generated(config, f"live/{name}.html", content=live_page(name)))
        content = (pictures / f"{name}.png").read_bytes()
        files.append(File.generated(config, f"live/{name}.png", content=content))
    for name in WALKS:
        files.append(File.generated(config, f"live/walk-{name}.html", content=walk_page(name)))
    for name in lessons.names():
        files.append(File.generated(config, f"lessons/live/{name}.html", content=lesson_page(name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace the marks of a page (called by mkdocs)."""
    del config

    def at(path: str) -> str:
        return get_relative_url(files.get_file_from_path(path).url, page.url)

    place = PurePosixPath(page.file.src_uri)
    if "<!-- lesson -->" in markdown:
        return markdown.replace("<!-- lesson -->", _steps(lessons.find(place.stem), at))
    markdown = markdown.replace("<!-- live -->", _frame(at(f"live/{FIRST}.html"), GALLERY[FIRST], HEIGHT["live"]))
    markdown = re.sub(
        r"<!-- walk (\w+) -->",
        lambda x: _frame(at(f"live/walk-{x[1]}.html"), f"{x[1]} walks", HEIGHT["live"]),
        markdown,
    )
    return re.sub("<!-- gallery -->", lambda _: _gallery(at), markdown)


def _frame(address: str, title: str, height: int) -> str:
    return (
        f'<iframe src="{address}" title="{html.escape(title)}" class="live" loading="lazy" '
        f'style="width:100%;height:{height}px;border:1px solid var(--md-default-fg-color--lightest);border-radius:4px" '
        'sandbox="allow-scripts allow-downloads"></iframe>\n'
    )


def _gallery(at: Any) -> str:
    cards = [(at(f"live/{name}.html"), at(f"live/{name}.png"), title) for name, title in GALLERY.items()]
    cards += [(at(page), at(picture), title) for page, (picture, title) in EXAMPLES.items()]
    made = "".join(
        f'<a class="card" href="{address}"><img src="{picture}" alt="" loading="lazy">'
        f"<span>{html.escape(title)}</span></a>"
        for address, picture, title in cards
    )
    return f'<div class="gallery">{made}</div>\n'


def _steps(lesson: Lesson, at: Any) -> str:
    """Return a lesson as Markdown: the live page, then its steps with the answers folded."""
    address = at(f"lessons/live/{lesson.name}.html")
    out = [
        f"{lesson.summary} About {lesson.minutes} minutes. "
        f"[Open the lesson in its own window](live/{lesson.name}.html), or write it as a file: "
        f"`kinetree lesson {lesson.name}`.\n",
        _frame(address, lesson.title, HEIGHT["lesson"]),
        "The text of the lesson, for reading without the page:\n",
    ]
    right = answers(lesson, kt.load(lesson.mechanism))
    for k, (step, number) in enumerate(zip(lesson.steps, right, strict=True)):
        out += [f"## {k + 1}. {step.title}\n", f"{step.text}\n"]
        if step.do:
            out.append(f"*{step.do}.* {step.look}\n")
        if step.question is not None and number is not None:
            unit = f" {step.question.unit}" if step.question.unit else ""
            why = step.question.why.replace("\n", "\n    ")
            ask = step.question.ask.replace("\n", " ")
            out.append(f'**Question.** {ask}\n\n??? success "Answer"\n    {number:.4g}{unit}. {why}\n')
    return "\n".join(out)
