"""The command from a wheel in a fresh environment: what is in the repository but not in the wheel is missed here."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import attnflow as af
from tests.cli.command import environment, good

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def nothing_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own path would come before the wheel."""
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executable in an environment with nothing but the wheel; its dependencies are lent by this one."""
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    if built.returncode:
        pytest.skip(f"a wheel cannot be built here: {built.stderr.strip().splitlines()[-1][:200]}")
    fresh = folder / "fresh"
    venv.create(fresh)
    [wheel] = folder.glob("attnflow-*.whl")
    python = fresh / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel],
        check=True,
        env=environment(),
    )
    # The other packages, but not this one: a path file inside a path that was added like this is not read.
    [packages] = fresh.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return fresh / "bin" / "attnflow"


def test_it_is_the_wheel_that_runs(installed: Path) -> None:
    place = good(
        "-c",
        "import attnflow; print(attnflow.__file__)",
        executable=(installed.with_name("python"),),
        cwd=installed.parent,
    )
    assert place.startswith(str(installed.parents[1]))
    assert good("--version", executable=(installed,)) == f"attnflow {af.__version__}\n"
    assert {row["name"] for row in json.loads(good("methods", "--json", executable=(installed,)))["methods"]} == set(
        af.METHODS
    )


def test_its_page_has_its_viewer(installed: Path, files: Path, tmp_path: Path) -> None:
    good("render", files / "flow.npz", "-o", tmp_path / "a.html", executable=(installed,))
    page = (tmp_path / "a.html").read_text("utf-8")
    for name in ("viewer.js", "viewer.css"):
        asset = (Path(af.__file__).parent / "assets" / name).read_text("utf-8")
        assert asset.strip() in page


def test_its_own_model_explains(installed: Path) -> None:
    shown = good("explain", "the key to the cabinets", "--level", "0", "--level", "1", executable=(installed,))
    assert "rollout: what “[CLS]” draws on, level by level" in shown
    assert "cabinet" in shown
