"""The positions of an input: what they are called, which are special or padding, which make a word or an image."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from attnflow.arrays import ReadOnly, frozen
from attnflow.errors import InvalidArgument
from attnflow.images import Picture, decoded, has_pillow

# How tokenizers mark the start or the inside of a word: WordPiece, byte-level BPE, SentencePiece, BPE end of word.
SUBWORD_MARKS = ("##", "Ġ", "▁", "</w>", "@@")


UNSET: Any = None  # the default of a field that `__post_init__` fills in


class Word(NamedTuple):
    """Tokens `start` to `stop` (not included) make one word."""

    start: int
    stop: int
    label: str


@dataclass(frozen=True)
class PatchGrid:
    """`rows` × `columns` image patches, row by row, the first one at position `offset`.

    `picture` is what they were cut from, where it is known.
    """

    rows: int
    columns: int
    offset: int = 0
    picture: Picture | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        whole = all(isinstance(size, int | np.integer) for size in (self.rows, self.columns, self.offset))
        if not whole or self.rows < 1 or self.columns < 1 or self.offset < 0:
            raise InvalidArgument(f"a patch grid needs at least 1 row and 1 column and an offset from 0, got {self}.")
        if self.picture is not None and not isinstance(self.picture, Picture):
            raise InvalidArgument(
                f"the picture of a patch grid is a Picture, got a {type(self.picture).__name__}. "
                "attnflow.images.picture() makes one of any image."
            )

    @property
    def stop(self) -> int:
        """The position after the last patch."""
        return self.offset + self.rows * self.columns


@dataclass(frozen=True, eq=False)
class Tokens(ReadOnly):
    """Labels of the positions, and what is known about them.

    `special` and `padding` are masks (True: a special token; True: padding). `words` are `(start, stop)` or
    `(start, stop, label)` spans in order, without overlap. `grids` are image patches; several are allowed.
    """

    labels: tuple[str, ...]
    special: NDArray[np.bool_] = UNSET
    padding: NDArray[np.bool_] = UNSET
    words: tuple[Word, ...] = ()
    grids: tuple[PatchGrid, ...] = ()

    if TYPE_CHECKING:  # what may be passed is wider than what is kept

        def __init__(
            self,
            labels: Sequence[str],
            special: Sequence[bool] | NDArray[Any] | None = None,
            padding: Sequence[bool] | NDArray[Any] | None = None,
            words: Iterable[Sequence[Any]] = (),
            grids: Iterable[PatchGrid] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the way to fill a frozen dataclass
        keep(self, "labels", _checked_labels(self.labels))
        keep(self, "special", checked_mask(self.special, len(self), "special"))
        keep(self, "padding", checked_mask(self.padding, len(self), "padding"))
        keep(self, "words", tuple(_word(span, self.labels) for span in self.words))
        keep(self, "grids", tuple(self.grids))
        if not all(isinstance(grid, PatchGrid) for grid in self.grids):
            raise InvalidArgument(f"grids are PatchGrid(rows, columns, offset), got {self.grids!r}.")
        self._check_spans()

    def _check_spans(self) -> None:
        end = 0
        for word in self.words:
            if not end <= word.start < word.stop <= len(self):
                raise InvalidArgument(
                    f"word spans must be in order, not empty and within {len(self)} tokens; got {tuple(word[:2])} after position {end}."
                )
            end = word.stop
        for grid in self.grids:
            if grid.stop > len(self):
                raise InvalidArgument(f"{grid} ends at position {grid.stop}, but there are {len(self)} tokens.")

    def __len__(self) -> int:
        return len(self.labels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokens) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.labels)

    @classmethod
    def of(cls, value: Tokens | Sequence[str] | None, count: int) -> Tokens:
        """`value` as `count` tokens: labels alone will do, and without any the positions are numbered."""
        if value is None:
            return cls([str(i) for i in range(count)])
        if not hasattr(value, "__iter__") and not isinstance(value, Tokens):
            raise InvalidArgument(f"tokens must be Tokens or a list of labels, got {value!r}.")
        tokens = value if isinstance(value, Tokens) else cls(tuple(value))
        if len(tokens) != count:
            raise InvalidArgument(
                f"got {len(tokens)} tokens for attention over {count} positions. Give one label for each position, special tokens included."
            )
        return tokens

    def position(self, query: int | str) -> int:
        """The position that an index (negative: from the end) or a label names. A label must name exactly one."""
        return self._labelled(query) if isinstance(query, str) else checked_index(query, len(self), "position")

    def positions(self, chosen: int | str | Iterable[int | str] | None, what: str = "query") -> tuple[int, ...]:
        """Several positions; None means all of them."""
        if chosen is None:
            return tuple(range(len(self)))
        alone = isinstance(chosen, str) or not isinstance(chosen, Iterable) or np.ndim(cast("Any", chosen)) == 0
        several = cast("Iterable[int | str]", [chosen] if alone else chosen)
        found = tuple(self._labelled(q) if isinstance(q, str) else checked_index(q, len(self), what) for q in several)
        if not found:
            raise InvalidArgument(f"no {what} was asked for: give at least one position, or None for all.")
        return found

    def _labelled(self, label: str) -> int:
        exact = [i for i, own in enumerate(self.labels) if own == label]
        found = exact or [i for i, own in enumerate(self.labels) if plain(own) == plain(label)]
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidArgument(f"token {label!r} is at positions {', '.join(map(str, found))}: give the position.")
        near = difflib.get_close_matches(label, [plain(own) for own in self.labels], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidArgument(f"no token is {label!r}.{hint} The tokens are: {' '.join(self.labels[:40])}")

    def select(self, kept: NDArray[np.bool_]) -> Tokens:
        """Only the kept positions. Words shrink with them; an image grid stays only if all of its patches do."""
        new_index = np.cumsum(kept) - 1
        words = []
        for start, stop, label in self.words:
            inside = np.flatnonzero(kept[start:stop]) + start
            if len(inside):
                words.append(Word(int(new_index[inside[0]]), int(new_index[inside[-1]]) + 1, label))
        grids = [replace(g, offset=int(new_index[g.offset])) for g in self.grids if kept[g.offset : g.stop].all()]
        labels = [label for label, keep in zip(self.labels, kept, strict=True) if keep]
        return Tokens(labels, self.special[kept], self.padding[kept], words, grids)

    def to_json(self) -> dict[str, Any]:
        """As plain lists, for files and pages. Pictures are left to `pictures`."""
        files = list(self._own_pictures())
        return {
            "labels": list(self.labels),
            "special": np.flatnonzero(self.special).tolist(),
            "padding": np.flatnonzero(self.padding).tolist(),
            "words": [list(word) for word in self.words],
            "grids": [_grid_to_json(grid, files) for grid in self.grids],
        }

    def pictures(self) -> dict[str, NDArray[np.uint8]]:
        """The pictures under the patch grids as files, each once, for `from_json` to find by name."""
        own = enumerate(self._own_pictures().values())
        return {f"picture{number}": np.frombuffer(one.encoded(2048)[0], dtype=np.uint8) for number, one in own}

    def _own_pictures(self) -> dict[int, Picture]:
        """By identity of the image: several grids may be cut from one."""
        found = (grid.picture for grid in self.grids if grid.picture is not None)
        return {id(one.pixels): one for one in found}

    @classmethod
    def from_json(cls, data: dict[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> Tokens:
        """The inverse of `to_json`; `arrays` are those of `pictures`."""
        count = len(data["labels"])
        masks = {}
        for name in ("special", "padding"):
            marked = [checked_index(position, count, "position") for position in data[name]]
            masks[name] = np.isin(np.arange(count), marked)
        seen: dict[str, Any] = {}
        grids = [_grid_from_json(grid, arrays or {}, seen) for grid in data["grids"]]
        return cls(data["labels"], **masks, words=data["words"], grids=grids)


def _grid_to_json(grid: PatchGrid, files: Sequence[int]) -> dict[str, Any]:
    plain: dict[str, Any] = {"rows": grid.rows, "columns": grid.columns, "offset": grid.offset}
    if grid.picture is not None:
        name = f"picture{files.index(id(grid.picture.pixels))}"
        size = [grid.picture.width, grid.picture.height]
        plain["picture"] = {"file": name, "size": size, "box": list(grid.picture.box)}
    return plain


def _grid_from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], seen: dict[str, Any]) -> PatchGrid:
    grid = PatchGrid(data["rows"], data["columns"], data["offset"])
    said = data.get("picture")  # not in the first files
    if said is None or said["file"] not in arrays or not has_pillow():
        return grid
    if said["file"] not in seen:
        seen[said["file"]] = decoded(arrays[said["file"]].tobytes())
    pixels = seen[said["file"]]
    scale = (pixels.shape[1] / said["size"][0], pixels.shape[0] / said["size"][1])  # large ones are stored smaller
    left, top, right, bottom = said["box"]
    return replace(
        grid, picture=Picture(pixels, (left * scale[0], top * scale[1], right * scale[0], bottom * scale[1]))
    )


def plain(label: str) -> str:
    """A token's label without the marks that a tokenizer puts on it, for people to read and to type."""
    text = label
    for mark in SUBWORD_MARKS:
        text = text.removeprefix(mark).removesuffix(mark)
    return text.strip() or label


def checked_index(index: Any, count: int, what: str) -> int:
    """`index` from 0 to count - 1, where it may have been counted from the end."""
    number = whole_number(index)
    if number is None:
        raise InvalidArgument(f"a {what} is a whole number, got {index!r}.")
    if not -count <= number < count:
        raise InvalidArgument(
            f"there is no {what} {number}: there are {count}, from 0 to {count - 1} (or from -{count} to -1)."
        )
    return number % count


def whole_number(value: Any) -> int | None:
    """`value` as an int, if it is a whole number and nothing else (not a truth value, not an array of several)."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def checked_mask(mask: Any, count: int, what: str) -> NDArray[np.bool_]:
    """`mask` as `count` booleans, read-only; None is all False."""
    if mask is None:
        return frozen(np.zeros(count, dtype=np.bool_))
    if hasattr(mask, "detach"):  # a torch tensor, wherever it is
        mask = mask.detach().cpu()
    array = np.asarray(mask)
    if array.shape != (count,) or not np.isin(array, (0, 1)).all():
        raise InvalidArgument(
            f"the {what} mask must be {count} booleans, one for each position; got {array.dtype} of shape {array.shape}."
        )
    return frozen(array.astype(np.bool_))


def _checked_labels(labels: Sequence[str]) -> tuple[str, ...]:
    if isinstance(labels, str):
        raise InvalidArgument(
            f"tokens must be a list of labels, got the string {labels!r}. Split it the way the model's tokenizer does."
        )
    for position, label in enumerate(labels):
        if not isinstance(label, str):
            raise InvalidArgument(f"token {position} must be a string, got {label!r}.")
    return tuple(labels)


def _word(span: Sequence[Any], labels: Sequence[str]) -> Word:
    if (
        not hasattr(span, "__len__")
        or len(span) not in (2, 3)
        or not all(isinstance(edge, int | np.integer) for edge in span[:2])
    ):
        raise InvalidArgument(f"a word is (start, stop) or (start, stop, label), got {span!r}.")
    start, stop = int(span[0]), int(span[1])
    return Word(start, stop, str(span[2]) if len(span) == 3 else "".join(plain(label) for label in labels[start:stop]))
