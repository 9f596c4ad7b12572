"""The names of edge rules and residual rules. Nothing here needs torch, so that a list of them costs nothing."""

from __future__ import annotations

from typing import Any, NamedTuple


class Entry(NamedTuple):
    """Where a rule's class lies, and what its variants ("norm:both") set."""

    module: str
    class_name: str
    option: str = ""
    values: tuple[str, ...] = ()


RULES: dict[str, Entry] = {
    "norm": Entry("_norm", "Norm", "with_layernorm", ("none", "first", "both")),
    "alti": Entry("_alti", "Alti", "distance", ("l1", "l2")),
    "value_zeroing": Entry("_value_zeroing", "ValueZeroing"),
    "routes": Entry("_routes", "Routes"),
    "effective": Entry("_effective", "Effective"),
}
RESIDUAL_NAMES = ("measured", "w_res")


def variants() -> list[str]:
    """Every name that a rule may be called by: "norm", "norm:none", …"""
    return [full for name, entry in RULES.items() for full in (name, *(f"{name}:{value}" for value in entry.values))]


def split(name: str) -> tuple[str, dict[str, Any]]:
    """The rule of a name, and what its variant sets: "alti:l2" is "alti" with distance="l2"."""
    rule, _, value = name.partition(":")
    return rule, {RULES[rule].option: value} if value else {}
