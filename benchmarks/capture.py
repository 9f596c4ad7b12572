"""What does it cost to capture attention while a model runs?

BERT-base's shape (12 layers × 12 heads, width 768, random weights), batch 1, 2 threads. Each row is a fresh process: the plain
forward pass with sdpa, the usual way (eager with output_attentions, mixed afterwards), and ours, with two alternatives that
were not chosen. Time is the best of a few runs, by the clock and of the processor (which a busy machine adds little to); memory is the peak of the first run beyond the loaded and warmed-up model.

    python -m benchmarks.capture [tokens …]        default: 128 512 2048 4096
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks._measure import Table, machine

WAYS = {
    "sdpa": "plain forward pass, sdpa",
    "eager": "eager with output_attentions, heads averaged",
    "ours": "capture.graph",
    "apart": "alternative: sdpa for the output, weights once more in blocks",
    "lse": "alternative: flash attention's log-sum-exp, weights as exp(QKᵀ − lse)",
}
BAR_TIME, AIM_TIME, BAR_MEMORY, BAR_TOKENS = 1.5, 1.3, 8, 2048
ROUNDS = 2
EAGER_LIMIT = 2048  # at 4096 eager wants 12 × 12 × 4096² × 4 bytes, 10 GB


def anonymous() -> float:
    """Memory of this process in MB, without the pages of libraries, which the system drops and reads again as it likes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def peak_anonymous(run: Callable[[], object]) -> float:
    """The most that `run` needs at once, result included, looked at every two milliseconds."""
    before = highest = anonymous()
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.002):
            highest = max(highest, anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    kept = run()
    done.set()
    watcher.join()
    highest = max(highest, anonymous())
    del kept
    return highest - before


def runner(way: str, model: Any, ids: Any) -> Callable[[], object]:
    import torch

    from attnflow import capture
    from attnflow.capture import _attend

    if way == "sdpa":

        def plain() -> object:
            with torch.no_grad():
                return model(input_ids=ids)

        return plain
    if way == "eager":
        model.set_attn_implementation("eager")

        def eager() -> object:
            with torch.no_grad():
                attentions = model(input_ids=ids, output_attentions=True).attentions
            return [0.5 * layer[0].mean(0) + 0.5 * torch.eye(layer.shape[-1]) for layer in attentions]

        return eager
    if way in ("apart", "lse"):
        _attend._by_blocks = {"apart": apart, "lse": by_lse}[way]
    return lambda: capture.graph(model, {"input_ids": ids})


def apart(call: Any, take: Any) -> Any:
    """sdpa computes the output; the weights are computed a second time for the mean."""
    import torch

    from attnflow.capture import _attend

    output = _attend._sdpa(call)
    heads, n, _ = call.query.shape[1:]
    query, key = (call.query[0] * call.scale), call.key[0].transpose(1, 2)
    block = max(32, _attend._BLOCK_BYTES // (heads * n * 4))
    buffer = query.new_empty(heads, min(block, n), n)
    for start in range(0, n, block):
        stop = min(start + block, n)
        weights = (
            buffer[:, : stop - start] if stop - start == buffer.shape[1] else buffer.new_empty(heads, stop - start, n)
        )
        torch.bmm(query[:, start:stop], key, out=weights)
        torch.softmax(weights, -1, out=weights)
        take(start, stop, weights[None])
    return output


def by_lse(call: Any, take: Any) -> Any:
    """The flash kernel hands out log Σ exp, which makes a second softmax unnecessary."""
    import torch

    from attnflow.capture import _attend

    output, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        call.query, call.key, call.value, scale=call.scale
    )[:2]
    heads, n = call.query.shape[1:3]
    lse = (lse[0] if lse.shape[1] == heads else lse[0].T)[..., None]
    query, key = (call.query[0] * call.scale), call.key[0].transpose(1, 2)
    block = max(32, _attend._BLOCK_BYTES // (heads * n * 4))
    for start in range(0, n, block):
        stop = min(start + block, n)
        take(start, stop, torch.baddbmm(lse[:, start:stop], query[:, start:stop], key, beta=-1).exp_()[None])
    return output.transpose(1, 2).contiguous()


def measure(way: str, tokens: int) -> None:
    """One row, in this process; prints JSON."""
    import torch
    import transformers as library

    transformers: Any = library  # whose classes are not typed

    torch.set_num_threads(2)
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    config = transformers.BertConfig(max_position_embeddings=max(512, tokens))
    model = transformers.BertModel(config).eval()
    run = runner(way, model, torch.randint(1000, 30000, (1, tokens)))
    runner(way, model, torch.randint(1000, 30000, (1, 16)))()  # what is loaded on first use is not part of the run
    gc.collect()
    peak = peak_anonymous(run)
    seconds, processor = [], []
    for _ in range(max(2, min(20, 4096 // tokens))):
        start = time.perf_counter(), time.process_time()
        run()
        seconds.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    print(json.dumps({"seconds": min(seconds), "processor": min(processor), "megabytes": peak}))


def fresh(way: str, tokens: int) -> dict[str, float]:
    """One row in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.capture", "--measure", way, str(tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{way} at {tokens} tokens failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(sizes: list[int]) -> None:
    print(machine())
    for tokens in sizes:
        ways = [way for way in WAYS if way in ("sdpa", "ours") or tokens <= EAGER_LIMIT]
        # Rounds, not repeats: when the machine is busy for a while, all ways have their share of it.
        rounds = [{way: fresh(way, tokens) for way in ways} for _ in range(ROUNDS)]
        rows = {way: {key: min(one[way][key] for one in rounds) for key in rounds[0][way]} for way in ways}
        table = Table(f"{tokens} tokens", "seconds", "÷ sdpa", "processor's seconds", "÷ sdpa", "extra MB")
        for way, row in rows.items():
            seconds, processor, plain = row["seconds"], row["processor"], rows["sdpa"]
            shares = f"{seconds / plain['seconds']:.2f}", processor, f"{processor / plain['processor']:.2f}"
            table.row(WAYS[way], seconds, *shares, round(row["megabytes"]))
        print(*table.lines, "", sep="\n", flush=True)
        if tokens == BAR_TOKENS:
            verdict(rows)


def verdict(rows: dict[str, dict[str, float]]) -> None:
    slower, busy = (rows["ours"][key] / rows["sdpa"][key] for key in ("seconds", "processor"))
    smaller = rows["eager"]["megabytes"] / rows["ours"]["megabytes"]
    kept = "kept" if slower <= BAR_TIME and smaller >= BAR_MEMORY else "MISSED"
    print(
        f"Bar at {BAR_TOKENS}: ours ≤ {BAR_TIME} × sdpa (aim {AIM_TIME}): {slower:.2f} ({busy:.2f} of the processor's time); eager's extra memory ≥ {BAR_MEMORY} × ours: {smaller:.1f}. {kept}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], int(sys.argv[3]))
    else:
        main([int(size) for size in sys.argv[1:]] or [128, 512, 2048, 4096])
