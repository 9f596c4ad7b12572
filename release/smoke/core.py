"""Without extras: arrays in, answers out, and every missing extra names its command."""

import subprocess

import numpy as np

import attnflow as af

stack = af.AttentionStack(np.random.default_rng(0).dirichlet(np.ones(6), size=(3, 2, 6)), [*"abcdef"])
graph = af.mix(stack)
rollout, flow = af.rollout(graph), af.flow(graph)
assert (rollout.scores <= flow.scores + 1e-12).all()
flow.save("flow.npz")
assert (af.Attribution.load("flow.npz").scores == flow.scores).all()
af.render.terminal(rollout)
af.render.page([rollout, flow], "page.html", graphs=graph)
subprocess.run(["attnflow", "render", "flow.npz", "-o", "again.html"], check=True)


def missing(extra, action):
    """The action fails for want of the extra, and says which."""
    said = "nothing"
    try:
        action()
    except af.errors.MissingExtra as error:
        said = str(error)
    assert f'pip install "attnflow[{extra}]"' in said, said


missing("models", lambda: af.explain("the key to the cabinets"))
missing("plot", lambda: af.render.figure(rollout, path="a.png"))
missing("notebook", lambda: af.render.widget(rollout))
missing("batch", lambda: af.batch.run([{"text": "the key"}], "out"))

for words in (["explain", "the key"], ["serve"], ["batch", "run", "page.html", "-o", "out"]):
    done = subprocess.run(["attnflow", *words], capture_output=True, text=True)
    assert done.returncode == 1, (words, done)
    assert "pip install" in done.stderr, (words, done)
    assert "Traceback" not in done.stderr
