"""Whatever goes wrong: one line that says what came, what was wanted and what to do. Never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command import bad, good, run

# What is typed in a folder with the files of `conftest.files`, the exit code, and what the line says.
TABLE = [
    ("explan x", 2, "Did you mean 'explain'"),
    ("explain x --methd flow", 2, "--method"),
    ("explain x --method flw", 2, "unknown method 'flw'. Did you mean 'flow'? Known: flow, raw, relevance, rollout."),
    ("explain x --edges gradiant", 2, "Did you mean 'gradient'"),
    ("explain x --heads maen", 2, "Did you mean 'mean'"),
    ("explain x --heads 1,x", 2, "expected mean"),
    ("explain x --residual half", 2, "got 'half'"),
    ("explain x --level top", 2, "a level is a whole number"),
    ("explain x --threads 0", 2, "0 is not in the range"),
    ("explain", 2, "Missing argument"),
    ("explain x y", 2, "unexpected extra argument"),
    ("explain missing.txt", 1, "there is no file missing.txt. .*echo 'missing.txt' | attnflow explain -"),
    ("explain ./missing", 1, "there is no file ./missing"),
    ("explain .", 1, "is a folder"),
    ("explain empty.txt", 1, "empty.txt is empty"),
    ("explain -", 1, "stdin is empty"),
    ("explain latin1.txt", 1, "not UTF-8: byte 0xe9 at position 6. .*iconv"),
    ("explain binary.txt", 1, "is not text: it holds zero bytes"),
    ("explain /proc/self/mem", 1, "could not read /proc/self/mem"),
    ("explain x -o answer.htm", 2, "Did you mean .html?"),
    ("explain x -o answer", 2, "no ending"),
    ("explain x -o nowhere/answer.html", 1, "there is no folder nowhere"),
    ("explain x -o /", 2, "no ending"),
    ("explain x -o -", 2, "-o - needs --format: one of html"),
    ("explain x --format json", 2, "it needs -o -"),
    ("explain x --json -o - --format csv", 2, "only one answer can go to stdout"),
    ("explain x -m raw -m flow -o answer.npz", 2, "holds one method, and 2 were asked for"),
    ("explain x --threads 2", 2, "--threads is for flow, and --method is rollout"),
    ("explain x -m raw --normalise", 2, "--normalise is for flow"),
    ("explain x --target plural", 2, "it needs --edges gradient or chefer"),
    ("explain x --quiet --verbose", 2, "contradict each other"),
    ("--quiet explain x --verbose", 2, "contradict each other"),
    ("capture x", 2, "where to"),
    ("capture x -o a.html", 2, "Known: .npz"),
    ("capture x -o a.npz --gradients", 2, "--gradients belongs to --every-head"),
    ("capture x -o a.npz --every-head --heads max", 2, "--heads cannot apply"),
    ("capture x -o a.npz --every-head --target 1", 2, "it needs --gradients"),
    ("explain keys --query nobody", 1, "no token is 'nobody'"),
    ("attribute missing.npz", 1, "there is no file missing.npz"),
    ("attribute damaged.npz", 1, "damaged"),
    ("attribute text.txt", 1, "is not a file of attnflow"),
    ("attribute flow.npz", 1, "holds an attribution, and this needs a graph (attnflow capture) or a stack"),
    ("attribute graph.npz --heads max", 1, "--heads cannot apply"),
    ("attribute graph.npz --query cabinett", 1, "no token is 'cabinett'. Did you mean 'cabinet'"),
    ("attribute graph.npz --query the", 1, "token 'the' is at positions 1, 4: give the position"),
    ("attribute graph.npz --query 8", 1, "there is no query 8: there are 8, from 0 to 7"),
    ("attribute graph.npz --level 3", 1, "there is no level 3: there are 3"),
    ("attribute stack.npz --top-k 9", 1, "top_k must be a whole number from 1 to the number of tokens, 8"),
    ("attribute stack.npz --residual 1.5", 1, "residual is a share from 0 to 1"),
    ("attribute stack.npz --residual 0.1,0.2", 1, "residual must be None or a number, 3 of them"),
    ("attribute stack.npz --edges gradient", 1, "needs gradients"),
    ("render", 2, "Missing argument"),
    ("render graph.npz", 1, "`attnflow attribute` makes of it"),
    ("render stack.npz", 1, "holds a stack"),
    ("render flow.npz --kind matrx", 2, "Did you mean 'matrix'"),
    ("render flow.npz --kind matrix", 2, "add -o FILE.png, .svg or .pdf"),
    ("render flow.npz --kind patches -o a.png", 1, "patch"),
    ("render flow.npz --title x", 2, "--title is for a page"),
    ("render flow.npz --level 7", 1, "level"),
    ("render flow.npz --query nobody", 1, "no token is 'nobody'"),
    ("bottleneck graph.npz", 2, "Missing option '-i' / '--input'"),
    ("bottleneck graph.npz --input kye", 1, "Did you mean 'key'"),
    ("bottleneck stack.npz --input key", 2, "give --query"),
    ("completion tcsh", 2, "'tcsh' is not one of"),
]


@pytest.mark.parametrize(("typed", "code", "said"), TABLE, ids=[row[0] for row in TABLE])
def test_bad_input(files: Path, typed: str, code: int, said: str) -> None:
    line = bad(code, *typed.split(), cwd=files)
    assert re.search(re.escape(said).replace(r"\.\*", ".*"), line), line


def test_an_empty_text(files: Path) -> None:
    assert "the text is empty" in bad(1, "explain", " ")


def test_a_text_that_is_not_utf8() -> None:
    assert "is not UTF-8" in bad(1, "explain", b"caf\xe9".decode("utf-8", "surrogateescape"))


def test_a_folder_that_cannot_be_written_to(files: Path) -> None:
    assert "could not write /proc/answer.npz" in bad(1, "attribute", files / "graph.npz", "-o", "/proc/answer.npz")


def test_without_torch_the_exact_command(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    line = bad(1, "explain", "the key", variables={"PYTHONPATH": str(tmp_path)})
    assert line.endswith('is not installed. Install it with: pip install "attnflow[models]"')


def test_without_matplotlib_the_exact_command(files: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'matplotlib'\", name='matplotlib')"
    )
    line = bad(1, "render", files / "flow.npz", "-o", tmp_path / "a.png", variables={"PYTHONPATH": str(tmp_path)})
    assert line.endswith('is not installed. Install it with: pip install "attnflow[plot]"')


# What only a loaded model can tell.


def test_a_text_beyond_the_models_limit(model: Path) -> None:
    line = bad(1, "explain", "the key " * 40, "--model", model)
    assert "the input has 82 tokens, the model takes at most 40" in line
    assert line.endswith("pass --truncate to cut it.")  # as the command line calls it


def test_an_unknown_folder(model: Path) -> None:
    line = bad(1, "explain", "the key", "--model", model.parent / "tinny")
    assert f"there is no folder '{model.parent / 'tinny'}'. Did you mean '{model}'?" in line


def test_a_name_of_the_hub_without_network(tmp_path: Path) -> None:
    (tmp_path / "models--google-bert--bert-base-cased").mkdir()
    line = bad(
        1, "explain", "the key", "--model", "google-bert/bert-base-casd", variables={"HF_HUB_CACHE": str(tmp_path)}
    )
    assert "could not load the model 'google-bert/bert-base-casd' from the hub" in line
    assert "download it elsewhere" in line
    assert line.endswith("Did you mean 'google-bert/bert-base-cased'?")


def test_verbose_shows_where(files: Path) -> None:
    done = run("attribute", files / "graph.npz", "--level", "9", "--verbose")
    assert done.returncode == 1
    assert "Traceback" in done.stderr.decode()
    assert done.stderr.decode().splitlines()[-1].startswith("Error: there is no level 9")


def test_quiet_says_nothing(files: Path, tmp_path: Path) -> None:
    done = run("--quiet", "attribute", files / "graph.npz", "-o", tmp_path / "a.npz", "-m", "flow")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert good("attribute", files / "graph.npz", "--quiet").startswith("rollout: ")  # the answer is not chatter
