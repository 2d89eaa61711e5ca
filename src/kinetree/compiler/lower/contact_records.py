"""Records of contacts: the frames of the surface (a) and of the shape (b), and the bodies between them."""

from __future__ import annotations

from typing import Any

from ...model.parts import Frame
from .tree_records import FrameRecord


class ContactRecord:
    """A contact with its two frames, and for each the bodies outward from the nearest common ancestor to it."""

    def __init__(self, contact: Any, a: FrameRecord, b: FrameRecord, chain_a: list, chain_b: list) -> None:
        """Store the contact, whose expressions are scalars already, its frames and the two chains of bodies."""
        self.contact, self.a, self.b = contact, a, b
        self.chain_a, self.chain_b = chain_a, chain_b


def contact_ends(contact: Any, of_surface: Any, of_shape: Any) -> tuple[FrameRecord, FrameRecord]:
    """Return the frames of the surface and of the shape, fixed to the records of their bodies."""
    surface = contact.surface
    return (
        FrameRecord(Frame(contact.name, surface.body, surface.placement), of_surface),
        FrameRecord(Frame(contact.name, contact.body, contact.placement), of_shape),
    )
