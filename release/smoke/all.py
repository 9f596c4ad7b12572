"""With `all`: a figure, a widget, a Captum method, a corpus, a server."""

import subprocess
import time
import urllib.request
from pathlib import Path

import attnflow as af

found = af.explain("the key to the cabinets")
af.render.figure(found, path="figure.svg")
assert Path("figure.svg").read_text(encoding="utf-8").count("cabinet")
af.render.widget(found)
Path("rows.jsonl").write_text('{"text": "the key to the cabinets"}\n{"text": "the keys"}\n', encoding="utf-8")
subprocess.run(["attnflow", "batch", "run", "rows.jsonl", "-o", "rows"], check=True, capture_output=True)
assert list(Path("rows").rglob("*.parquet"))

server = subprocess.Popen(["attnflow", "serve", "--port", "8971"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
try:
    for _ in range(120):
        try:
            with urllib.request.urlopen("http://127.0.0.1:8971/health", timeout=5) as answer:
                assert answer.status == 200
            break
        except OSError:
            time.sleep(0.5)
    else:
        raise AssertionError("the server did not start")
finally:
    server.terminate()
    server.wait(30)
