"""How answers look: on a terminal with tables and colour, piped as plain tab-separated text, or as JSON.

Owns ``Output``, the only thing that writes to standard output and standard error, and the making harmless of stored
text: on a terminal, control characters (and with them escape sequences) and direction overrides show as visible
escapes, and nothing stored is ever read as markup. Knows no verb. rich is imported on a terminal only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# C0 but tab and line feed, DEL, C1, line and paragraph separators, what reorders text in disguise (marks, overrides,
# isolates), what is there and cannot be seen (tag characters, annotations, joiners of nothing), half characters.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    r"\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SPACES = re.compile(r"\s+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AGES = ((365 * 86400, "y"), (30 * 86400, "mo"), (7 * 86400, "w"), (86400, "d"), (3600, "h"), (60, "min"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def harmless(text: str) -> str:
    """Text without characters that a terminal would act upon; they show as ``\\x1b`` and the like."""
    return _UNSAFE.sub(_escape, text)


def harmless_json(text: str) -> str:
    """JSON that means the same, without those characters: they can only stand within strings, as JSON's own escapes."""
    return _UNSAFE.sub(_json_escape, text)


def one_line(text: str) -> str:
    """Harmless text with every run of white space as one space."""
    return harmless(_SPACES.sub(" ", text).strip())


def age(micros: int, now: datetime | None = None) -> str:
    """How long ago, roughly: ``3 d ago``, ``in 2 h``, ``just now``."""
    seconds = ((now or datetime.now(UTC)) - (_EPOCH + timedelta(microseconds=micros))).total_seconds()
    for unit, name in _AGES:
        if abs(seconds) >= unit:
            count = int(abs(seconds) // unit)
            return f"{count} {name} ago" if seconds > 0 else f"in {count} {name}"
    return "just now"


def local(micros: int) -> str:
    """An instant in the local zone, to the minute; UTC where the platform's zone rules do not reach."""
    moment = _EPOCH + timedelta(microseconds=micros)
    try:
        return moment.astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return moment.strftime("%Y-%m-%d %H:%MZ")


def moment(micros: int | None) -> str:
    """Absolute and relative, or a dash."""
    return "-" if micros is None else f"{local(micros)} ({age(micros)})"


def size(count: int) -> str:
    """Bytes for people."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. ``grow`` takes what width is left and is cut to one line; ``style`` is rich's."""

    title: str
    style: str = ""
    right: bool = False
    grow: bool = False
    #: Shown on a terminal only when it is at least this wide.
    from_width: int = 0
    #: On a narrower terminal its cell stands on a line of its own beneath the growing one.
    beneath_below: int = 0
    #: Stands before it there.
    beneath: str = ""
    #: Folded over several lines rather than cut.
    fold: bool = False
    #: Left out on a terminal where every cell of it is empty.
    optional: bool = False


class Output:
    """Where a verb writes. ``as_json``: one JSON document instead of text."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.terminal = sys.stdout.isatty() and not as_json
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """rich's console, for a terminal. Obeys NO_COLOR and the terminal's width by itself."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False)
        return self._console

    def json(self, value: Any, *, one_line: bool = False) -> None:
        """A JSON document: non-ASCII as it is when piped, harmless on a terminal."""
        from memxd.cli.plain import dumps

        text = dumps(value, one_line=one_line)
        self._write((harmless_json(text) if sys.stdout.isatty() else text) + "\n")

    def line(self, text: str = "", style: str = "") -> None:
        """One line of our own words and stored text; made harmless, coloured on a terminal only."""
        if self.terminal and style:
            self.console.print(self.styled(text, style), soft_wrap=True)
        else:
            self._write(harmless(text) + "\n")

    def raw(self, text: str) -> None:
        """Stored text as it is: byte for byte when piped, harmless on a terminal."""
        self._write((harmless(text) if self.terminal else text) + "\n")

    def note(self, text: str) -> None:
        """A remark for people, on standard error."""
        sys.stdout.flush()
        sys.stderr.write(harmless(text) + "\n")

    def styled(self, text: str, style: str = "") -> Text:
        """Harmless text for rich; no markup in it is read."""
        from rich.text import Text

        return Text(harmless(text), style=style)

    def fields(self, rows: Iterable[tuple[str, str]]) -> None:
        """Names and values, one a line; values of several lines are indented."""
        rows = [(name, value) for name, value in rows if value]
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            text = value.replace("\n", "\n" + " " * (width + 2))
            if self.terminal:
                line = self.styled("").append(f"{name:<{width}}  ", "dim")
                line.append_text(self.styled(text))
                self.console.print(line, soft_wrap=True)
            else:
                self._write(f"{name}\t{one_line(value)}\n")

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
        """A table; piped: a line of titles, then tab-separated lines with nothing cut."""
        if not self.terminal:
            self._write("\t".join(c.title for c in columns) + "\n")
            for row in rows:
                self._write("\t".join(one_line(cell) for cell in row) + "\n")
            return
        self.console.print(self._drawn(columns, list(rows)))

    def _drawn(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Table:
        """The table for a terminal of this width."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        width = self.console.width
        shown = [i for i, c in enumerate(columns) if width >= c.from_width]
        shown = [i for i in shown if not columns[i].optional or any(row[i] for row in rows)]
        beneath = [i for i in shown if width < columns[i].beneath_below]
        beside = [i for i in shown if i not in beneath]
        grows = any(columns[i].grow for i in beside)
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, expand=grows, show_edge=False)
        for i in beside:
            column = columns[i]
            justify: Literal["left", "right"] = "right" if column.right else "left"
            overflow: Literal["fold", "ellipsis"] = "fold" if column.fold else "ellipsis"
            table.add_column(
                column.title, style=column.style, justify=justify, no_wrap=not column.fold, overflow=overflow,
                ratio=1 if column.grow else None,
            )  # fmt: skip
        for row in rows:
            below = self.styled("  ".join(columns[i].beneath + one_line(row[i]) for i in beneath), "dim")
            cells = [self.styled(one_line(row[i])) for i in beside]
            if beneath:
                at = next(n for n, i in enumerate(beside) if columns[i].grow)
                cells[at] = cells[at].append("\n").append_text(below)
            table.add_row(*cells)
        return table

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
