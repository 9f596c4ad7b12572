"""What `make demo` shows."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("matplotlib")

from experiments import demo


@pytest.mark.parametrize("columns", [150, 80])
def test_the_demo_answers_shows_three_maps_and_says_where_its_picture_is(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(columns))
    demo.main()
    printed = capsys.readouterr().out
    shown = " ".join(printed.split())  # a narrow console breaks lines
    assert "says “is” (singular, 99%)" in shown
    for method, residual in (("raw", "no residual"), ("rollout", "residual 0.5"), ("flow", "residual 0.5")):
        assert f"{method}: what “[CLS]” draws on" in shown
        assert residual in shown
    assert str(tmp_path / "demo.svg") in printed
    assert "<svg" in (tmp_path / "demo.svg").read_text(encoding="utf-8")
