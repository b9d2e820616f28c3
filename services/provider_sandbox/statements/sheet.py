"""A sheet of letter paper to draw on, in millimetres from its top left corner."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from fpdf import FPDF
from fpdf.drawing_primitives import DeviceRGB

from services.provider_sandbox.statements.lettering import ENCODING

INK = DeviceRGB(0.11, 0.15, 0.21)
NAVY = DeviceRGB(0.07, 0.17, 0.31)
TEAL = DeviceRGB(0.05, 0.50, 0.50)
GREY = DeviceRGB(0.42, 0.46, 0.52)
PALE = DeviceRGB(0.955, 0.965, 0.975)
HAIRLINE = DeviceRGB(0.85, 0.87, 0.89)
WHITE = DeviceRGB(1, 1, 1)

Style = Literal["", "B"]

PAGES = "{number of pages}"
"""What FPDF replaces at the end, in what `cell` has written; as wide as any number of pages."""


class Sheet(FPDF):
    """Texts are on one line and have been made writable."""

    def __init__(self) -> None:
        super().__init__(orientation="portrait", unit="mm", format="letter")
        self.core_fonts_encoding = ENCODING
        self.set_auto_page_break(False)
        self.set_margin(0)
        self.c_margin = 0
        self.alias_nb_pages(PAGES)
        self.use_font("", 8)

    def use_font(self, style: Style, size: float) -> None:
        if self.font_style != style or self.font_size_pt != size or not self.font_family:
            self.set_font("helvetica", style, size)

    def put(self, x: float, y: float, text: str, colour: DeviceRGB) -> None:
        self.text_color = colour
        self.text(x, y, text)

    def put_right(self, x: float, y: float, text: str, colour: DeviceRGB) -> None:
        self.put(x - self.width_of(text), y, text, colour)

    def put_amount(
        self, x: float, y: float, amount: Decimal, width: float, colour: DeviceRGB
    ) -> None:
        text = f"{amount:,.2f}"
        size = self.font_size_pt
        self.fit(text, width)
        self.put_right(x, y, text, colour)
        self.set_font_size(size)

    def fit(self, text: str, width: float) -> None:
        """Make the font smaller if the text would be wider."""
        wide = self.width_of(text)
        if wide > width:
            self.set_font_size(self.font_size_pt * width / wide)

    def width_of(self, text: str) -> float:
        """Millimetres. FPDF's own looks for markup and right-to-left text first, at ten times the cost."""
        assert self.current_font is not None
        text = self.normalize_text(text)
        return self.current_font.get_text_width(text, self.font_size_pt, None)[1] / self.k

    def wrapped(self, text: str, width: float, most_lines: int) -> list[str]:
        """The text in lines, broken between words, or within one that is too long for a line.

        What does not fit into `most_lines` is cut, with an ellipsis at the end.
        """
        lines = self._lines(text, width)
        if len(lines) > most_lines:
            lines[most_lines - 1 :] = [self.shortened(f"{lines[most_lines - 1]} …", width)]
        return lines

    def _lines(self, text: str, width: float) -> list[str]:
        if self.width_of(text) <= width:
            return [text]
        lines = [""]
        for word in text.split(" "):
            joined = f"{lines[-1]} {word}".lstrip()
            if self.width_of(joined) <= width:
                lines[-1] = joined
                continue
            if lines[-1]:
                lines.append("")
            for character in word:
                if self.width_of(lines[-1] + character) > width:
                    lines.append("")
                lines[-1] += character
        return lines

    def shortened(self, text: str, width: float) -> str:
        while self.width_of(text) > width:
            text = f"{text[:-2]}…"
        return text

    def box(self, x: float, y: float, width: float, height: float, colour: DeviceRGB) -> None:
        self.set_fill_color(colour)
        self.rect(x, y, width, height, style="F")

    def rule(self, x: float, until: float, y: float, colour: DeviceRGB) -> None:
        self.set_draw_color(colour)
        self.set_line_width(0.2)
        self.line(x, y, until, y)
