"""From an attribution to its View: the one place where pictures meet results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument
from attnflow.graph import AttentionGraph
from attnflow.images import ImageLike, picture
from attnflow.methods import Bottleneck
from attnflow.render._advice import advice, is_causal
from attnflow.render._view import Values, View
from attnflow.tokens import PatchGrid, Tokens, plain

# Byte-level BPE writes line ends and tabs as letters, and control characters would act on a terminal or a page.
_SYMBOLS = {"Ċ": "↵", "ĉ": "⇥", "\n": "↵", "\t": "⇥", "\r": "␍", " ": "␣", "": "∅"}
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_WORD_STARTS = ("Ġ", "▁")


def view(
    a: Attribution,
    *,
    query: int | str | None = None,
    words: bool = False,
    image: ImageLike | list[ImageLike] | None = None,
) -> View:
    """An attribution as a View.

    `query` is the position or token that pictures open at; without it the one that the result names in its options, or
    the only one, or the last token of a decoder, or the first special token, or the first one. `words` joins sub-words.
    `image` is what the tokens' patch grid was cut from (a list for several grids).
    """
    position = _opening(a, query)
    if words:
        position = _word_of(a.tokens, position)
        a = a.words()
    return View(
        method=a.method,
        values=a.scores,
        labels=labels_of(a),
        levels=a.level_names,
        queries=a.queries,
        inputs=a.inputs,
        query=position,
        caption=how(a.options),
        special=tuple(np.flatnonzero(a.tokens.special | a.tokens.padding).tolist()),
        joined=_joined(a.tokens),
        words=a.tokens.words,
        grids=pictured(a.tokens.grids, image),
        notes=tuple(advice(a, i) for i in range(len(a.levels))),
    )


def difference(a: Attribution | View, b: Attribution | View) -> View:
    """What `a` gives more, and less, than `b`: signed, over the levels, queries and inputs that both have."""
    first, second = (shown if isinstance(shown, View) else view(shown) for shown in (a, b))
    if first.labels != second.labels:
        raise InvalidArgument("a difference needs two attributions of the same tokens; these have different labels.")
    levels = [name for name in first.levels if name in second.levels]
    queries = [q for q in first.queries if q in second.queries]
    inputs = [i for i in first.inputs if i in second.inputs]
    if not levels or not queries or not inputs:
        raise InvalidArgument(
            "a difference needs levels, queries and inputs that both attributions have; there are none."
        )

    def shared(own: View) -> Values:
        axes = ((own.levels, levels), (own.queries, queries), (own.inputs, inputs))
        found: Values = own.values[np.ix_(*([list(have).index(x) for x in want] for have, want in axes))]
        return found

    same = first.method == second.method
    names = (f"{first.method} (first)", f"{second.method} (second)") if same else (first.method, second.method)
    return View(
        method=" − ".join(names),
        values=shared(first) - shared(second),
        labels=first.labels,
        levels=tuple(levels),
        queries=tuple(queries),
        inputs=tuple(inputs),
        query=first.query if first.query in queries else queries[0],
        caption=first.caption if first.caption == second.caption else f"{first.caption} − {second.caption}",
        special=first.special,
        joined=first.joined,
        words=first.words,
        grids=first.grids,
    )


def labels_of(named: Attribution | AttentionGraph | Bottleneck) -> tuple[str, ...]:
    """What every position is called in a picture."""
    return tuple(readable(label) for label in named.tokens.labels)


def readable(label: str) -> str:
    """A token's label for people: no tokenizer's marks, nothing that a terminal or a page would act on."""
    bare = plain(label)
    return _SYMBOLS.get(bare) or _UNPRINTABLE.sub("�", bare)


def how(options: Mapping[str, Any]) -> str:
    """How an attribution or a graph was made, in a line: model, edges, heads, residual, and what else was chosen."""
    said = [_model(str(options["model"]))] if options.get("model") else []
    if options.get("edges", "attention") != "attention":
        said.append(f"{options['edges']} edges")
    if "heads" in options:
        said.append(_heads(options["heads"]))
    if "head" in options:
        said.append(f"head {options['head']}, {options.get('below', 'mixed')} below")
    if "residual" in options:
        said.append(_residual(options["residual"]))
    limits = [name for name in ("top_k", "threshold", "discard") if options.get(name) is not None]
    said += [f"{name.replace('_', ' ')} {options[name]}" for name in limits]
    for name, words in (("drop_special", "without special tokens"), ("normalise", "rows sum to 1")):
        if options.get(name) is True:
            said.append(words)
    return " · ".join(said)


def _model(name: str) -> str:
    """The end of a hub name or of a folder, unless a folder is just called “model”."""
    path = PurePath(name)
    return path.parent.name if path.name == "model" and path.parent.name else path.name


def _heads(heads: Any) -> str:
    if isinstance(heads, str):
        return f"{heads} of heads"
    if isinstance(heads, int):
        return f"head {heads}"
    return "weighted heads"


def _residual(residual: Any) -> str:
    if residual is None or residual == 0:
        return "no residual"
    if isinstance(residual, str):  # a rule: the edges' own, or one that is measured
        return {"own": "residual in the edges"}.get(residual, f"residual {residual}")
    return f"residual {residual:g}" if isinstance(residual, int | float) else "residual as given"


def _opening(a: Attribution, query: int | str | None) -> int:
    if query is not None:
        position = a.tokens.position(query)
        if position not in a.queries:
            raise InvalidArgument(
                f"query {query!r} was not asked for; there are: {', '.join(map(str, a.queries[:20]))}."
            )
        return position
    named = a.options.get("query")
    if isinstance(named, int) and named in a.queries:
        return named
    if len(a.queries) > 1 and is_causal(a):
        return max(a.queries)
    special = [q for q in a.queries if a.tokens.special[q]]
    return (special or list(a.queries))[0]


def _joined(tokens: Tokens) -> tuple[int, ...]:
    """Positions that continue the word before them."""
    inside = {p for word in tokens.words for p in range(word.start + 1, word.stop)}
    if tokens.words:
        return tuple(sorted(inside))
    labels = tokens.labels
    marked = any(label.startswith(_WORD_STARTS) for label in labels)
    for position in range(1, len(labels)):
        label, before = labels[position], labels[position - 1]
        bare = marked and not label.startswith(_WORD_STARTS) and not tokens.special[position - 1 : position + 1].any()
        if label.startswith("##") or before.endswith("@@") or bare:
            inside.add(position)
    return tuple(sorted(inside))


def _word_of(tokens: Tokens, position: int) -> int:
    """Where a position's word is among the words."""
    inside = {p for word in tokens.words for p in range(word.start + 1, word.stop)}
    return position - sum(p <= position for p in inside)


def pictured(grids: tuple[PatchGrid, ...], image: ImageLike | list[ImageLike] | None) -> tuple[PatchGrid, ...]:
    """The grids over these images (one for each, in order). One that has its picture keeps what part of it is covered."""
    images = image if isinstance(image, list) else [] if image is None else [image]
    if len(images) > len(grids):
        raise InvalidArgument(f"got {len(images)} images for tokens with {len(grids)} patch grids.")
    over = [_over(grid, one) for grid, one in zip(grids, images, strict=False)]
    return (*over, *grids[len(over) :])


def _over(grid: PatchGrid, image: ImageLike) -> PatchGrid:
    shown = picture(image)
    known = grid.picture
    if shown is not image and known is not None and (known.width, known.height) == (shown.width, shown.height):
        shown = replace(shown, box=known.box)
    return replace(grid, picture=shown)
