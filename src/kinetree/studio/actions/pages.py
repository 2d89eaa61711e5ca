"""The page of a tab as one file."""

from __future__ import annotations

from typing import Any

from ...errors import InputError, brief
from ...view.page_writer import data_page
from ..tabs import Studio

LONGEST = 100_000
"""The longest state [characters]."""


def page_file(studio: Studio, state: Any = "") -> dict[str, Any]:
    """Return the page of the mechanism as the text of one file, which opens in a state, a link from its "#" on."""
    studio.tab.shown()
    if not isinstance(state, str) or len(state) > LONGEST:
        raise InputError(f"the state is {brief(state)}; expected the part of a link from the '#' on")
    return {"text": data_page(studio.tab.data, state=state)}
