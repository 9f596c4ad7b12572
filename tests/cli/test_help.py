"""Help comes before anything heavy is imported; the page of the documentation is this help."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from attnflow.cli._group import attnflow
from tests.cli.command import good

ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "torch", "transformers", "numba", "scipy", "matplotlib", "rich", "tqdm")
HELP = """
import sys
from attnflow.cli import main
try:
    main({arguments})
except SystemExit as exit:
    assert not exit.code, exit.code
print(*[name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("name", ["", *attnflow.commands])
def test_help_imports_nothing_heavy(name: str) -> None:
    code = HELP.format(arguments=[*name.split(), "--help"], heavy=HEAVY)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
    assert f"Usage: attnflow {name}".strip() in done.stdout


def test_that_test_can_fail() -> None:
    code = HELP.format(arguments=["methods", "--json"], heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numpy" in done.stderr.split()


def test_every_option_says_what_it_is() -> None:
    for name, command in attnflow.commands.items():
        assert command.help, name
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or getattr(parameter, "help", None), (name, parameter.name)


def test_the_page_is_in_step() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_cli.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_page_of_the_documentation_shows_every_command() -> None:
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for name in attnflow.commands:
        assert f"## attnflow {name}\n" in page
        assert f"$ attnflow {name} --help" in page
    assert good("explain", "--help", variables={"COLUMNS": "82"}).strip() in page
