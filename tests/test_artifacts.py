"""Files: what goes in comes out, and nothing that is not a good file gets in."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow.attribution import Saturation
from attnflow.errors import InvalidArtifact, SaveError


@pytest.fixture
def saved(graph: af.AttentionGraph, tmp_path: Path) -> Path:
    path = tmp_path / "a.npz"
    af.rollout(graph).save(path)
    return path


def test_round_trip_of_a_stack(stack: af.AttentionStack, tmp_path: Path) -> None:
    stack.save(tmp_path / "s.npz")
    again = af.AttentionStack.load(tmp_path / "s.npz")
    assert (again.weights == stack.weights).all()
    assert again.tokens == stack.tokens
    assert again.gradients is not None
    assert (again.gradients == stack.gradients).all()
    padded = af.AttentionStack(np.tile(np.eye(3), (1, 1, 1, 1)), padding=[0, 0, 1])
    padded.save(tmp_path / "s.npz")
    again = af.AttentionStack.load(tmp_path / "s.npz")
    assert again.cropped.tolist() == [False, False, True]
    assert again.gradients is None


def test_round_trip_of_a_graph(stack: af.AttentionStack, tmp_path: Path) -> None:
    graph = af.mix(stack, residual=[0.1, 0.2, 0.3], heads=np.array([1.0, 3.0]))
    graph.save(tmp_path / "g.npz")
    again = af.AttentionGraph.load(tmp_path / "g.npz")
    assert (again.levels == graph.levels).all()
    assert (again.passive == graph.passive).all()
    assert (again.tokens, again.names, again.kinds) == (graph.tokens, graph.names, graph.kinds)
    assert again.options == graph.options == {**graph.options, "residual": [0.1, 0.2, 0.3], "heads": [1.0, 3.0]}


def test_round_trip_of_an_attribution(graph: af.AttentionGraph, tmp_path: Path) -> None:
    found = af.rollout(graph, queries=["cab"], levels=[0, -1])
    found = dataclasses.replace(found, saturation=Saturation((0.0, 0.5), (0.0, 0.25), (0.0, 0.75)))
    found.save(tmp_path / "x.npz")
    again = af.Attribution.load(tmp_path / "x.npz")
    for name in ("tokens", "method", "levels", "queries", "inputs", "level_names", "options", "saturation"):
        assert getattr(again, name) == getattr(found, name), name
    assert (again.scores == found.scores).all()


def test_the_header_says_how_the_file_was_made(saved: Path) -> None:
    with np.load(saved, allow_pickle=False) as content:
        header = json.loads(content["header"].tobytes())
    assert (header["format"], header["kind"], header["version"]) == ("attnflow", "attribution", 1)
    assert header["written_by"] == f"attnflow {af.__version__}"
    assert header["options"]["residual"] == 0.5
    assert header["method"] == "rollout"


def test_options_that_are_functions_are_kept_by_name(stack: af.AttentionStack, tmp_path: Path) -> None:
    def loudest(heads: Any) -> Any:
        return heads.max(0)

    af.mix(stack, heads=loudest).save(tmp_path / "g.npz")
    assert af.AttentionGraph.load(tmp_path / "g.npz").options["heads"] == "loudest"


def header_with(path: Path, **changes: Any) -> None:
    with np.load(path) as content:
        arrays = dict(content)
    header = {**json.loads(arrays.pop("header").tobytes()), **changes}
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)


def scores_with(path: Path, scores: Any) -> None:
    with np.load(path) as content:
        np.savez(path, **{**content, "scores": scores})


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def plain_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.ones(2))


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (Path.touch, (self.path,))


TOKENS = af.Tokens(list("abcde")).to_json()

BREAKAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda p: p.unlink(), "there is no file"),
    "a folder": (a_folder, "is not a file"),
    "empty": (lambda p: p.write_bytes(b""), "is not a file of attnflow, or it is damaged"),
    "text": (lambda p: p.write_text("hello"), "is not a file of attnflow"),
    "truncated": (lambda p: p.write_bytes(p.read_bytes()[:-200]), "is not a file of attnflow, or it is damaged"),
    "a byte changed": (lambda p: p.write_bytes(p.read_bytes().replace(b'"method"', b'"mEthod"')), "damaged"),
    "another npz": (lambda p: np.savez(p, scores=np.ones(3)), "is not a file of attnflow"),
    "another zip": (lambda p: zipfile.ZipFile(p, "w").writestr("a.txt", "x"), "is not a file of attnflow"),
    "a plain array": (plain_array, "not a file of attnflow"),
    "foreign header": (lambda p: header_with(p, format="other"), "was not written by attnflow"),
    "newer": (lambda p: header_with(p, version=99), "has format version 99, this attnflow reads 1 to 1. A newer"),
    "the next version": (lambda p: header_with(p, version=2), "has format version 2"),
    "version 0": (lambda p: header_with(p, version=0), "has format version 0"),
    "version True": (lambda p: header_with(p, version=True), "has format version True"),
    "header of another shape": (
        lambda p: np.savez(p, header=np.frombuffer(b"[1]", dtype=np.uint8)),
        "not a JSON object",
    ),
    "levels that are no numbers": (lambda p: header_with(p, levels=[0.5, 1, 2]), "is damaged"),
    "no method": (lambda p: header_with(p, method=None), "is damaged"),
    "special out of range": (lambda p: header_with(p, tokens={**TOKENS, "special": [99]}), "is damaged"),
    "no version": (lambda p: header_with(p, version=None), "has format version None"),
    "another kind": (lambda p: header_with(p, kind="graph"), "is of kind 'graph', expected 'attribution'"),
    "no tokens": (lambda p: header_with(p, tokens=None), "is damaged"),
    "odd tokens": (lambda p: header_with(p, tokens={"labels": 3}), "is damaged"),
    "too few labels": (lambda p: header_with(p, queries=[0]), "is damaged: scores must have the shape"),
    "NaN": (lambda p: scores_with(p, np.full((3, 5, 5), np.nan)), "is damaged: scores hold NaN"),
    "strings": (lambda p: scores_with(p, np.full((3, 5, 5), "x")), "is damaged"),
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_file_that_is_no_good(saved: Path, breakage: str) -> None:
    spoil, message = BREAKAGES[breakage]
    spoil(saved)
    with pytest.raises(InvalidArtifact) as error:
        af.Attribution.load(saved)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("where", range(0, 100, 7))
def test_truncation_anywhere(saved: Path, where: int) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: len(content) * where // 100])
    with pytest.raises(InvalidArtifact):
        af.Attribution.load(saved)


def test_nothing_in_a_file_is_executed(saved: Path, tmp_path: Path) -> None:
    fired = tmp_path / "fired"
    scores_with(saved, np.array([Bomb(fired)], dtype=object))
    with pytest.raises(InvalidArtifact):
        af.Attribution.load(saved)
    saved.write_bytes(pickle.dumps(Bomb(fired)))
    with pytest.raises(InvalidArtifact):
        af.Attribution.load(saved)
    assert not fired.exists()
    pickle.loads(saved.read_bytes())
    assert fired.exists()  # the bomb was live


def test_a_failed_save_leaves_the_old_file(
    saved: Path, graph: af.AttentionGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def full_disk(file: Any, **arrays: Any) -> None:
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(SaveError, match=r"could not write .*a\.npz: No space left on device"):
        af.raw(graph).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]  # and no litter


def test_a_failed_rename_leaves_the_old_file(
    saved: Path, graph: af.AttentionGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(SaveError, match="Permission denied. Choose an existing folder"):
        graph.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_saving_into_a_missing_folder(graph: af.AttentionGraph, stack: af.AttentionStack, tmp_path: Path) -> None:
    for item in (graph, stack, af.raw(graph)):
        with pytest.raises(SaveError, match="No such file or directory"):
            item.save(tmp_path / "nowhere" / "x.npz")
    with pytest.raises(OSError, match="could not write"):
        graph.save(tmp_path / "nowhere" / "x.npz")
    with pytest.raises(SaveError, match="no file name holds a zero byte"):
        graph.save(tmp_path / "a\0b")


def test_a_saved_file_is_readable_like_any_other(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    assert saved.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_opens_without_torch(saved: Path) -> None:
    code = f"import sys, attnflow as af; a = af.Attribution.load({str(saved)!r}); print(a.top(1, 0)); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.startswith(
        "[("
    )


def test_a_full_disk_is_told_apart(saved: Path, graph: af.AttentionGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(SaveError, match="Free some space first") as error:
        graph.save(saved)
    assert error.value.errno == errno.ENOSPC


def test_a_link_stays_a_link_and_a_mode_stays_a_mode(saved: Path, graph: af.AttentionGraph, tmp_path: Path) -> None:
    saved.chmod(0o600)
    link = tmp_path / "link.npz"
    link.symlink_to(saved)
    graph.save(link)
    assert link.is_symlink()
    assert saved.stat().st_mode & 0o777 == 0o600
    assert (af.AttentionGraph.load(saved).levels == graph.levels).all()


def test_names_at_the_limit(graph: af.AttentionGraph, tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250 + ".npz")
    graph.save(path)
    assert af.AttentionGraph.load(path).names == graph.names
    with pytest.raises(InvalidArtifact):
        af.AttentionGraph.load(tmp_path / ("x" * 999))


def test_labels_that_are_no_text(tmp_path: Path) -> None:
    graph = af.AttentionGraph([[[1.0]]], ["\ud800"])
    graph.save(tmp_path / "g.npz")
    assert af.AttentionGraph.load(tmp_path / "g.npz").tokens.labels == ("\ud800",)
