"""What a wheel and an sdist hold, against what they should."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

# The bundled model is the one large thing that everybody gets.
LARGE = "attnflow/assets/verb_number/model.safetensors"
LARGEST_OTHER = 1_000_000
LARGEST_WHEEL = 8_000_000


def tracked(root: Path, below: str) -> set[str]:
    """Files that git knows below a folder."""
    listed = subprocess.run(["git", "ls-files", below], cwd=root, capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


def check_wheel(wheel: Path, root: Path) -> None:
    """All of the package, its licence and metadata, nothing else, and nothing large but the model."""
    with zipfile.ZipFile(wheel) as archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
        [metadata] = [name for name in sizes if name.endswith(".dist-info/METADATA")]
        said = Parser().parsestr(archive.read(metadata).decode())
    info = metadata.split("/", maxsplit=1)[0]
    package = {name for name in sizes if not name.startswith(info)}
    expect(package, {name.removeprefix("src/") for name in tracked(root, "src/attnflow")}, wheel.name)
    expect_at_least({f"{info}/licenses/LICENSE", f"{info}/entry_points.txt"}, set(sizes), wheel.name)
    large = {name for name, size in sizes.items() if size > LARGEST_OTHER} - {LARGE}
    assert not large, f"{wheel.name} holds large files: {sorted(large)}"
    assert wheel.stat().st_size <= LARGEST_WHEEL, (
        f"{wheel.name} has {wheel.stat().st_size:,} bytes, at most {LARGEST_WHEEL:,}"
    )
    check_metadata({key: said[key] for key in set(said.keys())}, said.get_all("Provides-Extra") or [])


def check_metadata(said: dict[str, str], extras: list[str]) -> None:
    """What a package index shows of it."""
    assert said["Name"] == "attnflow"
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Requires-Python"] == ">=3.11"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said["Summary"].endswith(".")
    assert set(extras) == {"models", "plot", "notebook", "references", "batch", "ray", "app", "all"}, extras


def check_sdist(sdist: Path, root: Path) -> None:
    """The package, its tests and what says what it is."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = tracked(root, "src") | {
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "pyproject.toml",
        "constraints.txt",
    }
    expect_at_least(wanted, names, sdist.name)
    assert not {name for name in names if name.startswith(("docs/gallery", "experiments/results", "."))} - {
        ".gitignore"
    }


def expect(found: set[str], wanted: set[str], where: str) -> None:
    """Exactly these."""
    assert found == wanted, f"{where}: missing {sorted(wanted - found)}, unexpected {sorted(found - wanted)}"


def expect_at_least(wanted: set[str], found: set[str], where: str) -> None:
    """These, and maybe more."""
    assert wanted <= found, f"{where}: missing {sorted(wanted - found)}"
