"""The shapes of a URDF: origins, geometry, materials and paths of meshes, which are looked up but not opened."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..algebra.rotations import from_quaternion, from_rpy
from ..errors import quote
from ..model.parts import Placement, Shape
from .report import Group
from .xml import Element, Source, describe_element

Color = tuple[float, float, float, float]
PACKAGED = ("package", "model")
"""Schemes of mesh paths that begin with the name of a folder."""
UNIT = 1e-6
"""Largest deviation of a length from 1 that is corrected without a report: files print about six digits."""

SIZES = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
}


def read_origin(source: Source, element: Element) -> Placement:
    """Return the placement given by the <origin> of an element; the identity without one."""
    origin = source.one(element, "origin")
    if origin is None:
        return Placement()
    source.rest(origin, ("xyz", "rpy", "quat_xyzw"))
    return placement_of(source, origin)


def placement_of(source: Source, origin: Element) -> Placement:
    """Return the placement given by the attributes xyz and rpy, or quat_xyzw, of an element."""
    xyz = source.vector(origin, "xyz", (0.0, 0.0, 0.0))
    if "quat_xyzw" in origin.attributes:
        if "rpy" in origin.attributes:
            raise source.error(origin, "has both rpy and quat_xyzw", "keep one of them")
        rotation = from_quaternion(unit(source, origin, source.numbers(origin, "quat_xyzw", 4)))
    else:
        rotation = from_rpy(*source.vector(origin, "rpy", (0.0, 0.0, 0.0)))
    return Placement(xyz, rotation)


def unit(source: Source, element: Element, numbers: tuple[float, ...]) -> tuple[float, ...]:
    """Return a vector scaled to unit length; report it if its length is not 1, and refuse zero length."""
    length = math.hypot(*numbers)
    if not 1e-9 < length < math.inf:
        raise source.error(element, f"{numbers} has no direction", "give numbers such as 0 0 1")
    if abs(length - 1.0) > UNIT:
        source.report.changed(f"{describe_element(element)}: scaled from length {length:.9g} to 1", element.line)
    return tuple(x / length for x in numbers)


def read_materials(source: Source, robot: Element) -> dict[str, Color]:
    """Return the colors of all named materials: first the robot's, then the ones defined in links."""
    colors: dict[str, Color] = {}
    for material in robot.all("material"):
        color = _own_color(source, material)
        name = material.attributes.get("name", "")
        if name in colors and color != colors[name]:
            source.report.suspect(
                f"{describe_element(material)} is already defined; the first definition is kept", material.line
            )
        if color is not None:
            colors.setdefault(name, color)
    for link in robot.all("link"):
        for visual in link.all("visual"):
            for material in visual.all("material")[:1]:
                name, colored = material.attributes.get("name", ""), material.all("color")
                if name and colored and name not in colors:
                    colors[name] = _rgba(source, colored[0])
    return colors


def read_shapes(source: Source, link: Element, colors: dict[str, Color], roots: Sequence[Path]) -> tuple[Shape, ...]:
    """Return the visuals and collisions of a link, in the order of the file."""
    out = []
    for element in link.children:
        if element.tag in ("visual", "collision"):
            shape = _shape(source, element, colors, roots)
            if shape is not None:
                out.append(shape)
    return tuple(out)


def _shape(source: Source, element: Element, colors: dict[str, Color], roots: Sequence[Path]) -> Shape | None:
    role = element.tag
    source.rest(element, ("name",), ("origin", "geometry", *(("material",) if role == "visual" else ())))
    placement = read_origin(source, element)
    color = _color(source, element, colors) if role == "visual" else None
    geometry = source.one(element, "geometry")
    if geometry is None or not geometry.children:
        source.report.dropped(f"{describe_element(element)}: it has no geometry", element.line)
        return None
    solid = geometry.children[0]
    source.rest(geometry, (), (solid.tag,))
    for extra in geometry.all(solid.tag)[1:]:
        source.unread(extra, geometry)
    name = element.attributes.get("name", "")
    if solid.tag == "mesh":
        source.rest(solid, ("filename", "scale"))
        scale = source.numbers(solid, "scale", 3, (1.0, 1.0, 1.0))
        file = mesh_file(source, solid, source.text(solid, "filename"), roots)
        return Shape("mesh", scale, placement, role, file, color, name)
    if solid.tag not in SIZES:
        known = ", ".join([*SIZES, "mesh"])
        source.report.dropped(
            f"{describe_element(solid)} of {describe_element(element)}: known shapes are {known}", solid.line
        )
        return None
    source.rest(solid, [attribute for attribute, _ in SIZES[solid.tag]])
    size = tuple(x for attribute, count in SIZES[solid.tag] for x in source.numbers(solid, attribute, count))
    if min(size) < 0:
        source.report.suspect(f"{describe_element(solid)} has a negative size", solid.line)
    return Shape(solid.tag, size, placement, role, "", color, name)


def _color(source: Source, visual: Element, colors: dict[str, Color]) -> Color | None:
    material = source.one(visual, "material")
    if material is None:
        return None
    color, name = _own_color(source, material), material.attributes.get("name", "")
    if color is None and name and name not in colors and source.one(material, "texture") is None:
        source.report.suspect(f"{describe_element(material)} has no color and is not defined elsewhere", material.line)
    return color or colors.get(name)


def _own_color(source: Source, material: Element) -> Color | None:
    source.rest(material, ("name",), ("color",))
    color = source.one(material, "color")
    if color is None:
        return None
    source.rest(color, ("rgba",))
    return _rgba(source, color)


def _rgba(source: Source, color: Element) -> Color:
    red, green, blue, alpha = source.numbers(color, "rgba", 4)
    return red, green, blue, alpha


def mesh_file(source: Source, mesh: Element, text: str, roots: Sequence[Path]) -> str:
    """Return the path of a mesh, or its text as it stands, with an entry in the report, if there is no such file."""
    scheme, _, rest = text.rpartition("://")
    found = find_mesh(text, roots) or (find_mesh(text, ros_folders()) if scheme in PACKAGED else None)
    if found is None:
        package = quote(rest.partition("/")[0], 80)
        remedy = "give its folder as one of roots= (command line: --root)"
        if scheme in PACKAGED:
            remedy = f"give the folder that contains {package} as one of roots= (command line: --root), or in "
            remedy += "ROS_PACKAGE_PATH"
        group = Group(
            f"meshes are not found and not drawn; {remedy.replace('its folder', 'their folder')}", quote(text, 80)
        )
        source.report.suspect(f"mesh {quote(text, 200)} is not found and not drawn; {remedy}", mesh.line, group)
    return text if found is None else str(found)


def ros_folders() -> list[Path]:
    """Return the folders of packages that ROS declares: ROS_PACKAGE_PATH, and `share` in AMENT_PREFIX_PATH."""
    folders = [Path(x) for x in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if x]
    return folders + [Path(x) / "share" for x in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if x]


def find_mesh(text: str, roots: Iterable[Path]) -> Path | None:
    """Return the file of a mesh path if it is inside one of the folders, else None; no file is opened.

    `package://name/rest` and `model://name/rest` mean rest in a folder `name`, which is in a root or is a root itself.
    `file://` paths may be absolute; others are relative to the roots. Links and `..` must not lead out of the folders.
    """
    scheme, _, rest = text.rpartition("://")
    rest = rest.lstrip("/") if scheme in PACKAGED else rest
    if len(text) > 4096 or scheme not in ("", "file", *PACKAGED):
        return None
    for root in roots:
        try:
            folder = root.resolve()
            for candidate in _candidates(scheme, rest, folder):
                real = candidate.resolve()
                if real.is_relative_to(folder) and real.is_file():
                    return real
        except (OSError, ValueError, RuntimeError):  # invalid names, circular links
            continue
    return None


def _candidates(scheme: str, rest: str, folder: Path) -> list[Path]:
    if scheme == "file":
        return [folder / rest]
    if Path(rest).is_absolute():
        return []
    package, _, inner = rest.partition("/")
    inside = [folder / inner] if scheme and package == folder.name and not inner.startswith("/") else []
    return [folder / rest, *inside]
