# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists of structures and records that notebooks show as tables."""
import enum
import html
from typing import Any, Iterable, List, TypeVar

T = TypeVar("T")


class Table(List[T]):
    """A list whose elements have the same members. Columns that are empty everywhere are not
    shown."""

    ROWS = 200  # that are shown at most

    def _repr_html_(self) -> str:
        shown = [dict(one.asdict()) for one in self[:self.ROWS]]  # type: ignore[attr-defined]
        names = [name for name in dict.fromkeys(name for row in shown for name in row)
                 if any(row.get(name) not in (None, "", [], ()) for row in shown)]
        head = cells("th", names)
        rows = "".join(f"<tr>{cells('td', [row.get(name) for name in names])}</tr>"
                       for row in shown)
        more = len(self) - len(shown)
        return (f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
                + (f"<p>and {more} more</p>" if more else ""))


def cells(tag: str, values: "Iterable[Any]") -> str:
    """The cells of a row."""
    return "".join(f"<{tag}>{html.escape(text_of(one))}</{tag}>" for one in values)


def text_of(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, enum.Enum) and value.name:
        return value.name.lower().replace("_", "-")
    return "" if value is None else str(value)
