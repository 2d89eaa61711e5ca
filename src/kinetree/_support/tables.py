"""Results as lines and tables: text for consoles, HTML for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

ROWS, COLUMNS = 40, 16
"""The most rows and columns of a table in a result that is printed or shown; what is left out is counted."""

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """A table: a heading and a unit ("" for none) per column; rows have texts, numbers and None."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    units: tuple[str, ...] = ()
    name: str = ""
    title: str = ""

    @property
    def labels(self) -> list[str]:
        """The headings with their units: "peak power [W]"."""
        units = self.units or ("",) * len(self.heads)
        return [f"{head} [{unit}]" if unit else head for head, unit in zip(self.heads, units, strict=True)]

    def text(self) -> str:
        """Return the table as aligned text, whole."""
        return self._text(self.labels, [[cell_text(x) for x in row] for row in self.rows])

    def shortened(self) -> str:
        """Return the table as aligned text, without the rows and columns that exceed a screen."""
        labels, cells, rest = self._some()
        return "\n".join([self._text(labels, cells), *([rest] if rest else [])])

    def html(self) -> str:
        """Return the table as HTML, without the rows and columns that exceed a screen."""
        labels, cells, rest = self._some()
        left = [' style="text-align:left"' * (not right) for right in self._numeric(cells, len(labels))]
        lines = [_row("th", labels, left)] if any(labels) else []
        lines += [_row("td", row, left) for row in cells]
        if rest:
            lines.append(f'<tr><td colspan="{len(labels)}" style="text-align:left">{rest}</td></tr>')
        return f"<table>{''.join(lines)}</table>"

    def _some(self) -> tuple[list[str], list[list[str]], str]:
        """Return the headings and cells to show, and how many are left out."""
        count, wide = len(self.rows), len(self.heads)
        kept = [*range(COLUMNS - 1), wide - 1] if wide > COLUMNS else range(wide)
        labels = self.labels
        cells = [[cell_text(row[k]) for k in kept] for row in (self.rows[:ROWS] if count > ROWS + 1 else self.rows)]
        parts = [f"{count - len(cells):,} more rows"] if len(cells) < count else []
        parts += [f"{wide - len(kept):,} more columns before the last"] if len(kept) < wide else []
        return [labels[k] for k in kept], cells, f"... and {' and '.join(parts)}" if parts else ""

    def _text(self, labels: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
        widths = [max(map(len, column)) for column in zip(labels, *cells, strict=True)]
        numeric = self._numeric(cells, len(labels))
        out = []
        for line in ([labels] if any(labels) else []) + list(cells):
            columns = zip(line, widths, numeric, strict=True)
            out.append("  ".join(x.rjust(w) if right else x.ljust(w) for x, w, right in columns).rstrip())
        return "\n".join(out)

    @staticmethod
    def _numeric(cells: Sequence[Sequence[str]], count: int) -> list[bool]:
        return [bool(cells) and all(_is_numeric(row[k]) for row in cells) for k in range(count)]


class Displayed:
    """A result that is shown as lines and tables: as text where it is printed, and as HTML in notebooks.

    A dataclass of this sort has repr=False, so that consoles show the same text.
    """

    def display(self) -> Iterable[str | Table]:
        """Return the lines and tables, in order."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return lines and tables as text."""
        return "\n".join(part if isinstance(part, str) else part.shortened() for part in self.display())

    def __repr__(self) -> str:
        """Return the text, for consoles."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return lines and tables as HTML, for notebooks."""
        return html_of(self.display())


def html_of(parts: Iterable[str | Table]) -> str:
    """Return lines and tables as HTML; line breaks of texts are kept."""
    lines = [f"<p>{escape(p).replace(chr(10), '<br>')}</p>" if isinstance(p, str) else p.html() for p in parts]
    return "".join(lines)


def count_text(number: int, what: str, many: str = "") -> str:
    """Return a number of things as words: "1 body", "2 bodies"; the plural is with an "s", unless it is given."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def cell_text(x: Cell) -> str:
    """Return a cell as text: numbers with four significant digits, "-" for nothing."""
    if x is None:
        return "-"
    return str(x) if isinstance(x, str | int) else figure(x)


def figure(x: float, digits: int = 4) -> str:
    """Return a number with some significant digits, without an exponent if it is of ordinary size."""
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "no limit" if x > 0 else "-inf"
    if x == 0.0:
        return "0"
    size = math.floor(math.log10(abs(x)))
    if -4 <= size < 7:
        return f"{x:.{max(0, digits - 1 - size)}f}"
    return f"{x:.{digits - 1}e}"


def _is_numeric(cell: str) -> bool:
    try:
        float(cell.rstrip("~%"))
    except ValueError:
        return cell in ("", "-", "no limit")
    return True


def _row(tag: str, cells: Iterable[str], left: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}{side}>{escape(x)}</{tag}>" for x, side in zip(cells, left, strict=True)) + "</tr>"
