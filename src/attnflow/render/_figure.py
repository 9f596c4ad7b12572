"""The figure: matplotlib, for papers. PNG, SVG with real text, PDF; nothing global is touched."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attnflow.artifacts import write_atomically
from attnflow.errors import InvalidArgument, MissingExtra, suggest
from attnflow.render._colour import GROUND
from attnflow.render._shown import Shown, as_view, listed
from attnflow.render._view import SPECIAL, FlowView, View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = ("png", "svg", "pdf")


def figure(
    shown: Shown | Sequence[Shown],
    kind: str | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    query: int | str | None = None,
    level: int = -1,
    special: str = "unscaled",
    words: bool = False,
    scale: str = "shared",
    image: Any = None,
    smooth: bool = True,
    candidates: Sequence[int | str] | None = None,
    top: int | None = None,
    theme: str = "light",
    width: float | None = None,
) -> Figure:
    """Draw one attribution, or several side by side; written to `path` (.png, .svg, .pdf) if there is one.

    `kind`: "strip" (the text, coloured by what a query draws from it), "levels" (level × token; the default), "matrix"
    (query × input), "graph" (levels of positions, edges by weight; the default of a Bottleneck), "patches" (over the
    image; the default with `image`) or "bars" (the `candidates`, or the `top` inputs, level by level).
    `scale` is "shared" by all panels or "separate". `smooth` patches blend, others are blocks. `width` is in inches.
    """
    if scale not in ("shared", "separate"):
        raise InvalidArgument(f"unknown scale {scale!r}." + suggest(scale, ("shared", "separate")))
    if special not in SPECIAL:
        raise InvalidArgument(f"unknown value for special {special!r}." + suggest(special, SPECIAL))
    if theme not in GROUND:
        raise InvalidArgument(f"unknown theme {theme!r}." + suggest(theme, GROUND))
    form = _form(path)
    views = [as_view(one, query=query, words=words, image=image) for one in listed(shown)]
    _need_matplotlib()
    from attnflow.render._figure_kinds import KINDS, Choice

    kind = kind or _default_kind(views[0])
    if kind not in KINDS:
        raise InvalidArgument(f"unknown kind of figure {kind!r}." + suggest(kind, KINDS))
    if kind != "graph" and any(isinstance(one, FlowView) for one in views):
        raise InvalidArgument(f'the flow of a pair is drawn as a "graph", not as {kind!r}.')
    choice = Choice(level, special, scale, smooth, tuple(candidates or ()), top, theme, width)
    with _style(theme, "".join({label for one in views for label in one.labels})):
        drawn = KINDS[kind](views, choice)
        if path is not None:
            _save(drawn, Path(path), form)
    return drawn


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("matplotlib, which figures need,", extra="plot") from None


def _default_kind(view: View | FlowView) -> str:
    if isinstance(view, FlowView):
        return "graph"
    return "patches" if any(grid.picture for grid in view.grids) else "levels"


def _form(path: str | os.PathLike[str] | None) -> str:
    if path is None:
        return ""
    form = Path(path).suffix.lower().lstrip(".")
    if form not in ENDINGS:
        raise InvalidArgument(f"a figure is written as .png, .svg or .pdf, got {os.fspath(path)!r}.")
    return form


# What a label may be written in besides DejaVu Sans, where it is installed.
_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Malgun Gothic", "Arial Unicode MS", "Segoe UI",
)  # fmt: skip


def _more_fonts(letters: str) -> list[str]:
    """Further fonts, where DejaVu Sans lacks a letter; only then, so that a file does not depend on the machine."""
    from matplotlib import font_manager

    drawn = font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap()
    if all(ord(letter) in drawn for letter in letters):
        return []
    known = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _FONTS if name in known]


@contextmanager
def _style(theme: str, letters: str) -> Iterator[None]:
    """Fonts, thin lines and colours of a theme, while drawing and saving, and no longer."""
    import matplotlib

    ink, soft = ("#1b1f24", "#8a9099") if theme == "light" else ("#e8eaed", "#8a9099")
    ground = GROUND[theme]
    settings: dict[str, Any] = {
        "font.family": ["DejaVu Sans", *_more_fonts(letters)],
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.linewidth": 0.6,
        "axes.edgecolor": soft,
        "axes.labelcolor": ink,
        "text.color": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "figure.facecolor": ground,
        "axes.facecolor": ground,
        "savefig.facecolor": ground,
        "svg.fonttype": "none",  # text stays text: it can be searched, copied and restyled
        "svg.hashsalt": "attnflow",  # the same picture is the same file
        "pdf.fonttype": 42,
        "text.parse_math": False,  # a token may be a dollar sign
    }
    with matplotlib.rc_context(cast(Any, settings)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _save(drawn: Figure, path: Path, form: str) -> None:
    memory = io.BytesIO()
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    drawn.savefig(memory, format=form, dpi=200, metadata={"Creator": "attnflow", **dated} if form != "png" else None)
    write_atomically(path, lambda file: file.write(memory.getbuffer()))
