"""Writes docs/cli.md from the commands themselves; with --check it only says whether the page is in step."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from attnflow.cli._group import attnflow

PAGE = Path(__file__).parent / "cli.md"
WIDTH = 80
INTRODUCTION = """# The command line

`attnflow explain` goes from a text to an answer in one step. The other commands go the same way from file to file, each
starting from the file of the one before:

```text
text ──capture──▶ graph.npz ──attribute──▶ flow.npz ──render──▶ terminal · page.html · figure.svg
                            ──bottleneck─▶ the paths of one pair
```

| habit | |
|---|---|
| **Where things go** | Answers go to stdout, everything else (progress, notes, errors) to stderr. `-o FILE` writes what the ending says and may be repeated; `-o - --format json`, or `--json`, is for pipes. |
| **Exit codes** | 0 answered; 1 failed, with one line of error; 2 used wrongly; 130 stopped by Ctrl-C; 141 whoever read the answer went away. |
| **Files** | A file is written under a temporary name and then renamed: the old one or the new one is there, never half of one. |
| **Loudness** | `--quiet` leaves nothing but errors on stderr, `--verbose` adds tracebacks and what libraries say. Both work before and after the command's name. |
| **Colour** | Only in a terminal. `NO_COLOR=1` switches it off, `FORCE_COLOR=1` on (for `less -R`); `COLUMNS` sets the width, and `COLORFGBG` tells a light ground from a dark one. |
| **Models** | A folder, or a name on the hub. `HF_HUB_OFFLINE=1` never asks the network; without an address for the hub that is assumed. |
| **Tokens that are numbers** | `--query 5` is position 5. The token “5” is asked about by its position, which any error about tokens lists. |
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, _section(click.Context(attnflow, info_name="attnflow"), "attnflow", "The commands")]
    for name, command in attnflow.commands.items():
        context = click.Context(command, info_name=name, parent=click.Context(attnflow, info_name="attnflow"))
        parts.append(_section(context, f"attnflow {name}", f"attnflow {name}"))
        for inner, part in getattr(command, "commands", {}).items():
            within = click.Context(part, info_name=inner, parent=context)
            parts.append(_section(within, f"attnflow {name} {inner}", f"attnflow {name} {inner}"))
    return "\n".join(parts)


def _section(context: click.Context, command: str, title: str) -> str:
    context.terminal_width = WIDTH
    context.max_content_width = WIDTH
    context.help_option_names = ["-h", "--help"]
    return f"## {title}\n\n```text\n$ {command} --help\n{context.get_help().rstrip()}\n```\n"


def main() -> None:
    made = page()
    if "--check" not in sys.argv:
        PAGE.write_text(made, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made:
        sys.exit("docs/cli.md is not in step with the commands. Make it again: python docs/make_cli.py")


if __name__ == "__main__":
    main()
