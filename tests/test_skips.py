"""The guard over skipped tests: in continuous integration none may be skipped without leave."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

CASES = {
    "a test": "import pytest\n\ndef test_it():\n    pytest.skip('no reason')\n",
    "a file": "import pytest\n\npytest.importorskip('no_such_module')\n\ndef test_it():\n    pass\n",
}


def run(folder: Path, strict: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    environment = {**os.environ, "ATTNFLOW_STRICT_SKIPS": strict}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


@pytest.mark.parametrize("case", CASES)
def test_a_skip_fails_unless_the_list_knows_it(tmp_path: Path, case: str) -> None:
    shutil.copy(HERE / "strict_skips.py", tmp_path / "conftest.py")
    (tmp_path / "skips.txt").write_text("# none\n")
    (tmp_path / "test_it.py").write_text(CASES[case])
    (tmp_path / "test_other.py").write_text("def test_fine():\n    assert True\n")
    assert run(tmp_path, strict="").returncode == 0
    refused = run(tmp_path, strict="1")
    assert refused.returncode == 1
    assert "SKIPPED WITHOUT LEAVE test_it.py" in refused.stdout
    (tmp_path / "skips.txt").write_text("test_it.py for a reason\n")
    assert run(tmp_path, strict="1").returncode == 0
