"""The kernels by themselves: what the search undoes, remembers and keeps on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from attnflow.kernels import ready
from tests import naive
from tests.strategies import attention

Levels = NDArray[np.float64]


def graph_of(n: int, depth: int, kind: str = "sharp", seed: int = 0) -> Levels:
    levels = attention(np.random.default_rng(seed), (depth + 2, n, n), kind, causal=False)
    return np.ascontiguousarray(0.5 * levels + 0.5 * np.eye(n))


def search(levels: Levels, queries: list[int], inputs: list[int], bounds: float = np.inf, step: int = 1) -> Levels:
    """All pairs, none of them helped by a bound."""
    scores, counter = np.zeros(len(queries)), np.zeros(1, np.int64)
    foot = np.ascontiguousarray(levels[0].T)
    pairs = np.array(queries), np.array(inputs), np.full(len(queries), bounds)
    for first in range(step):
        flows, left, stop = np.zeros(levels[1:-1].size), np.empty((2, levels.shape[-1])), np.zeros(1, np.int64)
        graph = levels[1:-1].ravel(), len(levels) - 2, levels[-1], foot
        ready().search_pairs(*graph, *pairs, 1e-15, 1e-12, scores, first, step, counter, stop, flows, left)
    assert counter[0] == len(queries)
    return scores


def test_each_pair_leaves_the_graph_as_it_found_it() -> None:
    levels = graph_of(30, 4)
    queries, inputs = [3, 7, 3, 0, 3] * 5, [9, 2, 9, 0, 9] * 5
    scores = search(levels, queries, inputs)
    assert (scores.reshape(5, 5) == scores[:5]).all()
    assert scores[0] == scores[2] == scores[4]
    assert (search(levels, queries, inputs, step=4) == scores).all()


def test_without_bounds_the_search_proves_the_same_value() -> None:
    levels = graph_of(6, 2, "soft")
    for query, key in ((0, 5), (2, 2), (4, 1)):
        assert abs(search(levels, [query], [key])[0] - naive.max_flow(levels, query, key)) < 1e-12


def test_too_many_edges_to_remember(tmp_path: Path) -> None:
    """What is touched outgrows the log when only 1 edge per position may be remembered; the answers stay the same."""
    script = (
        "from attnflow.kernels import _flow\n_flow.REMEMBERED = REMEMBER\n"  # a constant until it is compiled
        "from tests.kernels.test_flow_kernels import graph_of, search\n"
        "levels = graph_of(40, 5, 'sparse', 3)\nq = list(range(40)) * 2\n"
        "print(search(levels, q, q[::-1]).tobytes().hex())"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", script.replace("REMEMBER\n", f"{remembered}\n")],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / str(remembered))},
        ).stdout
        for remembered in (0, 48)
    ]
    few, many = (np.frombuffer(bytes.fromhex(text)) for text in found)
    np.testing.assert_allclose(few, many, atol=1e-14)


def test_a_cancelled_search_stops_before_the_next_pair() -> None:
    levels, done, scores = graph_of(10, 1), np.zeros(1, np.int64), np.zeros(3)
    pairs = np.arange(3), np.arange(3), np.full(3, np.inf)
    foot = np.ascontiguousarray(levels[0].T)
    stop, flows, left = np.ones(1, np.int64), np.zeros(100), np.empty((2, 10))
    ready().search_pairs(
        levels[1].ravel(), 1, levels[-1], foot, *pairs, 1e-15, 1e-12, scores, 0, 1, done, stop, flows, left
    )
    assert done[0] == 0


def test_products_with_min_in_place_of_times() -> None:
    rng = np.random.default_rng(0)
    left, left_joint, right, right_joint = rng.random((4, 9, 9))
    out, out_joint = np.zeros((2, 9, 9))
    ready().min_products(left, right, left_joint, right_joint, 2, 7, out, out_joint)
    for found, a, b in ((out, left, right), (out_joint, left_joint, right_joint)):
        np.testing.assert_allclose(found[2:7], np.minimum(a[:, :, None], b[None]).sum(1)[2:7])
        assert (found[:2] == 0).all()


FIRST = "import attnflow as af, numpy as np; print(af.flow(af.AttentionGraph(np.full((3, 2, 2), .5))).scores.sum())"


def test_the_compiled_kernels_are_kept_and_it_is_said_when_that_takes_long(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = [
        subprocess.run([sys.executable, "-W", "error", "-c", FIRST], capture_output=True, text=True, env=environment)
        for _ in range(2)
    ]
    assert [r.returncode for r in run] == [0, 0], run[0].stderr
    assert "preparing the flow kernels" in run[0].stderr
    assert run[1].stderr == ""
    assert list(tmp_path.rglob("*.nbi"))
    assert run[0].stdout == run[1].stdout == "10.0\n"


# Only the smallest kernel, since compiling takes time; what is kept of it and where.
PRODUCT = """
import sys, numpy as np
from attnflow import kernels
one = np.ones((1, 1))
kernels._prepared(lambda flow: flow.min_products(one, one, one, one, 0, 1, one.copy(), one.copy()))
from attnflow.kernels import _flow
print(sum(_flow.min_products.stats.cache_hits.values()), sum(_flow.min_products.stats.cache_misses.values()))
"""


def product(prelude: str = "", **variables: str) -> str:
    """`hits misses` of the cache in a fresh process."""
    run = [sys.executable, "-W", "error", "-c", prelude + PRODUCT]
    done = subprocess.run(run, capture_output=True, text=True, env={**os.environ, **variables}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("kind", "size"), [("nbi", 20), ("nbc", 200)])
def test_damaged_files_in_the_cache_are_made_again(tmp_path: Path, kind: str, size: int) -> None:
    kept = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert product(**kept) == "0 1"
    assert product(**kept) == "1 0"
    [file] = tmp_path.rglob(f"*min_products*.{kind}")
    file.write_bytes(file.read_bytes()[:size])
    product(**kept)
    assert product(**kept) == "1 0"


def test_a_full_disk_does_not_stop_the_work(tmp_path: Path) -> None:
    full = (
        "import numba.core.caching as caching\ndef save(*_): raise OSError(28, 'No space left on device')\n"
        "caching.IndexDataCacheFile._save_index = save\n"
    )
    product(full, NUMBA_CACHE_DIR=str(tmp_path))
    assert not list(tmp_path.rglob("*.nb?"))


@pytest.mark.parametrize("home_is_writable", [True, False])
def test_a_read_only_install(tmp_path: Path, home_is_writable: bool) -> None:
    """Kept in the user's cache folder, or nowhere. A file in the place of a folder stops root as well."""
    import attnflow

    package, home = tmp_path / "site" / "attnflow", tmp_path / "home"
    shutil.copytree(Path(attnflow.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "assets"))
    (package / "kernels" / "__pycache__").write_text("")
    if not home_is_writable:
        home.write_text("")
    variables = {"PYTHONPATH": str(package.parent), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    cleared = "import os; os.environ.pop('NUMBA_CACHE_DIR', None)\n"
    product(cleared, **variables)
    assert product(cleared, **variables) == ("1 0" if home_is_writable else "0 1")
    assert bool(list(tmp_path.rglob("*.nbi"))) == home_is_writable


def test_importing_and_making_graphs_does_not_load_numba() -> None:
    code = "import sys, numpy, attnflow as af; af.flow, af.bottleneck; af.rollout(af.AttentionGraph(numpy.eye(2)[None])); print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
