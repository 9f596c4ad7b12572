"""What the package shows and what it drags in: the public names, and nothing heavy at import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import attnflow as af

PUBLIC = {
    "METHODS",
    "AttentionGraph",
    "AttentionStack",
    "Attribution",
    "AttnflowError",
    "Bottleneck",
    "PatchGrid",
    "Tokens",
    "against_uniform",
    "attribute",
    "batch",
    "bottleneck",
    "by_head",
    "capture",
    "errors",
    "evaluate",
    "explain",
    "flow",
    "flow_bounds",
    "head_importance",
    "mix",
    "raw",
    "relevance",
    "render",
    "rollout",
    "study",
}
HEAVY = ("torch", "transformers", "numba", "scipy", "matplotlib", "pandas", "rich", "click", "tqdm", "jax")


def loaded_after(code: str) -> set[str]:
    """Which heavy packages a fresh interpreter holds after running `code`."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_door_is_exactly_this() -> None:
    assert set(af.__all__) == PUBLIC
    assert set(dir(af)) == PUBLIC | {"__version__"}
    for name in PUBLIC:
        assert getattr(af, name) is not None


def test_importing_the_command_line_adds_nothing_to_the_door() -> None:
    """A submodule that is imported becomes an attribute of its package, and may shadow a function of its name."""
    script = (
        "import attnflow as af, attnflow.cli, attnflow.__main__, attnflow.capture, attnflow.render\n"
        "print(*sorted(af.__all__))\nprint(*dir(af))\nassert all(callable(getattr(af, n)) for n in ('explain', 'mix', 'flow', 'rollout'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names, shown = (set(line.split()) for line in done.stdout.splitlines())
    assert (names, shown) == (PUBLIC, PUBLIC | {"__version__"})


def test_star_import_gives_the_same() -> None:
    names: dict[str, object] = {}
    exec("from attnflow import *", names)
    assert set(names) - {"__builtins__"} == PUBLIC


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'attnflow' has no attribute 'rolout'"):
        _ = af.rolout


@pytest.mark.parametrize(
    "code",
    [
        "import attnflow",
        "from attnflow import *",
        "import attnflow as af, numpy as np; g = af.AttentionGraph(np.eye(3)[None]); af.rollout(g); af.raw(g)",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    assert loaded_after(code) == set()


def test_that_test_can_fail() -> None:
    assert loaded_after("import scipy") == {"scipy"}


def test_importing_attnflow_does_not_even_import_numpy() -> None:
    script = "import sys, attnflow; print('numpy' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\n"
    )
