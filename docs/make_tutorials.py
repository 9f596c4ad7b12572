"""Run the tutorials and turn them into pages: docs/tutorials/*.ipynb → runs/tutorials/*.md with their pictures.

    python docs/make_tutorials.py [NAME …]

A notebook is kept without outputs, so what a page shows is what the code says now. It runs in a folder of its own. A cell
that raises ends the build with the cell and its error. A tutorial whose needs are not installed (its metadata lists them
under "needs") is left out, with the reason.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "tutorials"
OUT = HERE.parent.parent / "runs" / "tutorials"


def missing(notebook: Any) -> list[str]:
    """Packages that the notebook needs and that are not here."""
    needs = notebook.metadata.get("attnflow", {}).get("needs", [])
    return [name for name in needs if importlib.util.find_spec(name) is None]


def execute(notebook: Any, folder: Path) -> None:
    """Run all cells, in `folder`."""
    from nbclient import NotebookClient

    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parents[1]), os.environ.get("PYTHONPATH")]))
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources=where, extra_arguments=["--log-level=ERROR"]
    )
    client.execute()


def without_noise(notebook: Any) -> None:
    """Progress bars and what libraries say on stderr are not part of a page."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in cell.outputs
                if output.get("name") != "stderr"
                and "application/vnd.jupyter.widget-view+json" not in output.get("data", {})
            ]


def write(notebook: Any, name: str) -> Path:
    """The run notebook as a page, its pictures beside it."""
    from nbconvert import MarkdownExporter

    text, resources = MarkdownExporter().from_notebook_node(
        notebook, resources={"output_files_dir": f"{name}_files", "unique_key": name}
    )
    for path, data in resources["outputs"].items():
        (OUT / path).parent.mkdir(parents=True, exist_ok=True)
        (OUT / path).write_bytes(data)
    page = OUT / f"{name}.md"
    title, _, rest = text.lstrip().partition("\n")
    page.write_text(f"{title}\n\n[Download this notebook]({name}.ipynb)\n{rest}", encoding="utf-8")
    return page


def main(names: list[str]) -> int:
    """Make the pages of these tutorials, or of all."""
    import nbformat

    paths = [path for path in sorted(HERE.glob("*.ipynb")) if not names or path.stem in names]
    if not names:
        shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True, exist_ok=True)
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        if lacking := missing(notebook):
            print(f"{path.name}: left out, {', '.join(lacking)} not installed (make weights)")
            (OUT / f"{path.stem}.md").write_text(
                f"# {path.stem.replace('-', ' ').capitalize()}\n\nNot run here: needs {', '.join(lacking)}.\n",
                encoding="utf-8",
            )
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            execute(notebook, Path(folder))
        without_noise(notebook)
        print(f"{write(notebook, path.stem)}: {time.perf_counter() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
