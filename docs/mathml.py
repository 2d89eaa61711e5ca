"""Turn the LaTeX of the pages into MathML while the site is built, so that no page needs a script from elsewhere."""

import html
import re

from latex2mathml.converter import convert

MATH = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)


def on_page_content(content: str, **_: object) -> str:
    """Replace every formula of a page (called by mkdocs)."""
    return MATH.sub(_formula, content)


def _formula(match: re.Match[str]) -> str:
    block = match["tag"] == "div"
    return convert(html.unescape(match["latex"]), display="block" if block else "inline")
