"""What attnflow.web shows, what it drags in, and what it says without its extra."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from attnflow import web
from attnflow.errors import InvalidArgument


def test_the_door_is_exactly_this() -> None:
    assert set(web.__all__) == {"Limits", "Served", "app", "serve"} == set(dir(web))
    for name in web.__all__:
        assert callable(getattr(web, name))
    with pytest.raises(AttributeError, match="no attribute 'aqp'"):
        _ = web.aqp


def test_nothing_heavy_is_loaded_until_it_is_used() -> None:
    heavy = ("starlette", "uvicorn", "torch", "transformers", "numba")
    script = f"from attnflow import web\nimport sys\nprint(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_it_names_it(missing: str) -> None:
    script = (
        f"import sys; sys.modules[{missing!r}] = None\nfrom attnflow.cli import main\nmain(['serve', '--port', '0'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert 'pip install "attnflow[app]"' in done.stderr


@pytest.mark.parametrize(
    "given", [{"tokens": 0}, {"seconds": -1.0}, {"body": True}, {"runs": 0}, {"seconds": float("inf")}]
)
def test_limits_must_be_limits(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="must be a number above 0"):
        web.Limits(**given)


def test_models_have_names_of_their_own(model: web.Served) -> None:
    with pytest.raises(InvalidArgument, match="no model was named"):
        web.app({})
    with pytest.raises(InvalidArgument, match="two models are called 'a'"):
        web.app(["a=x", "a=y"])
