"""Is what would be uploaded what users need?  `make release-check` builds it, looks inside and installs it into empty environments.

    python -m release.check [--quick]

`--quick` builds and looks inside only. Environments: without extras on every Python from 3.11 up that the machine has, then
with `models` and with `all` on those Pythons for which the pinned torch is a build without CUDA packages.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from release.contents import check_sdist, check_wheel

ROOT = Path(__file__).resolve().parent.parent
SMOKE = ROOT / "release" / "smoke"


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command; if it fails, show what it printed and stop."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    result: subprocess.CompletedProcess[str] = done
    return result


def build(folder: Path) -> tuple[Path, Path]:
    """A wheel and an sdist of what git knows, the sdist first and the wheel out of it."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def pythons() -> list[Path]:
    """One interpreter of each version from 3.11 up: on the PATH, and among pyenv's."""
    names = re.compile(r"python3(\.\d+)?$")
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted((Path.home() / ".pyenv" / "versions").glob("*/bin"))
    found: dict[tuple[int, int], Path] = {sys.version_info[:2]: Path(sys._base_executable)}  # type: ignore[attr-defined]
    for folder in folders:
        for path in sorted(folder.glob("python3*")) if folder.is_dir() else ():
            if names.match(path.name) and (version := usable(path)) and version >= (3, 11):
                found.setdefault(version, path)
    return [found[version] for version in sorted(found)]


def usable(python: Path) -> tuple[int, int] | None:
    """The version of an interpreter that can make environments, or None."""
    script = "import ensurepip, sys, venv; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    major, _, minor = done.stdout.strip().partition(" ")
    return (int(major), int(minor)) if done.returncode == 0 else None


def environment(python: Path, wheel: Path, extra: str, folder: Path) -> Path:
    """An empty environment with the wheel and one extra; its Python."""
    run(python, "-m", "venv", folder)
    fresh = folder / "bin" / "python"
    run(fresh, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", "pip")
    run(fresh, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", f"{wheel}{extra}")
    return fresh


def drags_cuda(python: Path, wheel: Path, folder: Path) -> bool:
    """Would the pinned torch bring gigabytes of CUDA packages on this Python?"""
    run(python, "-m", "venv", folder)
    report = folder / "report.json"
    run(
        folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--dry-run", "--report", report,
        "--constraint", ROOT / "constraints.txt", f"{wheel}[models]",
    )  # fmt: skip
    names = [one["metadata"]["name"].lower() for one in json.loads(report.read_text())["install"]]
    return any(name.startswith(("nvidia", "cuda", "triton")) for name in names)


def plans(wheel: Path, scratch: Path) -> Iterator[tuple[Path, str]]:
    """Which Python with which extra."""
    found = pythons()
    for python in found:
        yield python, ""
    for python in found:
        if drags_cuda(python, wheel, scratch / f"probe-{python.parent.parent.name}-{python.name}"):
            print(
                f"{python.name} {usable(python)}: models and all left out, the pinned torch is a CUDA build there",
                flush=True,
            )
            continue
        yield python, "[models]"
        yield python, "[all]"


def smoke(fresh: Path, extra: str, elsewhere: Path) -> None:
    """Use what was installed, far from the project."""
    script = SMOKE / f"{extra.strip('[]') or 'core'}.py"
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    clean |= {"HF_HUB_OFFLINE": "1", "PATH": f"{fresh.parent}{os.pathsep}{clean['PATH']}"}
    print(run(fresh, "-W", "error::DeprecationWarning:attnflow", script, cwd=elsewhere, env=clean).stdout.rstrip())


def main() -> int:
    """Build, look inside, install, use."""
    parser = argparse.ArgumentParser(prog="python -m release.check", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="build and look inside; install nothing")
    quick = parser.parse_args().quick
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        wheel, sdist = build(scratch / "built")
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
        check_wheel(wheel, ROOT)
        check_sdist(sdist, ROOT)
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(scratch / "built", ROOT / "dist")
        print(
            f"{wheel.name} ({wheel.stat().st_size:,} bytes) and {sdist.name} ({sdist.stat().st_size:,} bytes) are in dist/"
        )
        for number, (python, extra) in enumerate(() if quick else plans(wheel, scratch)):
            started, place = time.perf_counter(), scratch / f"environment-{number}"
            fresh = environment(python, wheel, extra, place)
            smoke(fresh, extra, scratch)
            version = ".".join(map(str, usable(python) or ()))
            print(f"Python {version}, attnflow{extra}: works ({time.perf_counter() - started:.0f} s)", flush=True)
            shutil.rmtree(place)
    print(f"release check passed in {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
