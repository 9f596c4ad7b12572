"""With `models`: the bundled model from Python and from the shell."""

import json
import subprocess

import attnflow as af

found = af.explain("the key to the cabinets", method="flow")
assert found.tokens.labels[0] == "[CLS]"
said = subprocess.run(
    ["attnflow", "explain", "the key to the cabinets", "--json"], capture_output=True, text=True, check=True
)
assert json.loads(said.stdout)
subprocess.run(["attnflow", "explain", "the key to the cabinets", "-o", "answer.html"], check=True, capture_output=True)
