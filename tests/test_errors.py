from __future__ import annotations

import inspect

import pytest

from attnflow import errors


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = {line.split()[1] for line in (errors.__doc__ or "").splitlines() if line.startswith(("├──", "└──"))}
    real = {
        name for name, item in vars(errors).items() if inspect.isclass(item) and issubclass(item, errors.AttnflowError)
    }
    assert drawn | {"AttnflowError"} == real


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InvalidAttention, ValueError),
        (errors.InvalidArgument, ValueError),
        (errors.SaveError, OSError),
        (errors.UnknownMethod, LookupError),
        (errors.MissingExtra, ImportError),
    ],
)
def test_can_be_caught_as_the_builtin_too(error: type, builtin: type) -> None:
    assert issubclass(error, builtin)
    assert issubclass(error, errors.AttnflowError)


def test_missing_extra_names_the_command() -> None:
    assert (
        str(errors.MissingExtra("torch", extra="models"))
        == 'torch is not installed. Install it with: pip install "attnflow[models]"'
    )
    assert str(errors.MissingExtra("pandas", package="pandas")).endswith("pip install pandas")


def test_suggest() -> None:
    assert errors.suggest("rolout", ["raw", "rollout"]) == " Did you mean 'rollout'? Known: raw, rollout."
    assert errors.suggest("x", ["raw"]) == " Known: raw."
