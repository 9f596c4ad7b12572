"""Train the verb-number model: `python -m experiments.verb_number.train [--small]`.

First masked words and tags on whole sentences, then the number of the verb. A run is a folder named after its recipe;
started again, it continues from its last checkpoint and ends with the same weights as if it had never stopped.
"""

from __future__ import annotations

import argparse
import json
import os
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import torch
from tqdm import tqdm
from transformers import RobertaPreLayerNormForSequenceClassification

from . import mixture, tokenizer
from .evaluate import Score, evaluate
from .examples import shared_folder
from .network import Batch, Trainee, collate, configuration
from .recipe import RECIPES, Recipe

ROOT = Path(__file__).resolve().parents[2]


class Training:
    """One run: its folder, its data, its network, and how far it got."""

    def __init__(self, recipe: Recipe, runs: Path, data: Path | None) -> None:
        self.recipe = recipe
        self.folder = runs / f"{recipe.name}-{recipe.digest}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sources = mixture.load(recipe, data)
        self.tokenizer = tokenizer.build(self.sources.counts, words=recipe.whole_words, pieces=recipe.word_pieces)
        self.tag_ids = {tag: index for index, tag in enumerate(tokenizer.TAGS)}
        self.mixture = mixture.Mixture(recipe, self.sources, tokenizer.Encoder(self.tokenizer), self.tag_ids)
        torch.manual_seed(recipe.seed)
        self.pad = int(self.tokenizer.pad_token_id)
        self.network = Trainee(recipe, configuration(recipe, len(self.tokenizer), self.pad), len(self.tag_ids))
        self.average = {name: value.clone() for name, value in self.network.classifier.state_dict().items()}
        matrices = [p for p in self.network.parameters() if p.ndim > 1]
        vectors = [p for p in self.network.parameters() if p.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98), fused=True)
        self.pools_done = 0
        self.steps_done = 0

    @property
    def total_pools(self) -> int:
        return self.recipe.pretrain_pools + self.recipe.pools

    def run(self, *, stop_after: int | None = None, quiet: bool = False) -> None:
        """All pools that are still to do, or as many as `stop_after` says."""
        self.restore()
        end = self.total_pools if stop_after is None else min(self.total_pools, self.pools_done + stop_after)
        self.network.train()
        with tqdm(total=self.total_pools, initial=self.pools_done, unit="pool", disable=quiet) as progress:
            while self.pools_done < end:
                losses = self.one_pool(self.pools_done)
                self.pools_done += 1
                progress.set_postfix({name: f"{value:.3f}" for name, value in losses.items()}, refresh=False)
                progress.update()
                if self.pools_done % self.recipe.checkpoint_every == 0 or self.pools_done == end:
                    self.save(losses)

    def one_pool(self, number: int) -> dict[str, float]:
        """One pool, in batches of like length in random order; the mean of each loss."""
        recipe = self.recipe
        pretraining = number < recipe.pretrain_pools
        rows = self.mixture.sentences(number) if pretraining else self.mixture.pool(number)
        batches = self.batches(rows, Random(f"{recipe.seed} order {number}"))
        masked: list[Batch] = []
        if not pretraining and recipe.masked_every:
            few = self.mixture.sentences(number)[: len(rows) // recipe.masked_every]
            masked = self.batches(few, Random(f"{recipe.seed} masked {number}"))
        every = max(1, len(batches) // (len(masked) or 1))
        sums: dict[str, float] = {}
        seen: dict[str, int] = {}
        for place, batch in enumerate(batches):
            jobs = [(batch, pretraining)]
            if masked and place % every == every - 1:
                jobs.append((masked.pop(), True))
            for job, filling in jobs:
                for name, value in self.step(job, filling=filling).items():
                    sums[name] = sums.get(name, 0.0) + value
                    seen[name] = seen.get(name, 0) + 1
        return {name: total / seen[name] for name, total in sums.items()}

    def batches(self, rows: list[mixture.Encoded], rng: Random) -> list[Batch]:
        rows = sorted((row for row in rows if len(row.ids) <= tokenizer.LONGEST), key=lambda row: len(row.ids))
        size = self.recipe.batch
        out = [collate(rows[start : start + size], self.pad) for start in range(0, len(rows), size)]
        rng.shuffle(out)
        return out

    def step(self, batch: Batch, *, filling: bool) -> dict[str, float]:
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate * self.pace()
        with half_precision():
            if filling:
                mask_id = int(self.tokenizer.mask_token_id)
                losses = self.network.fill_in(batch, mask_id, len(tokenizer.SPECIAL) + len(tokenizer.TAGS))
            else:
                losses = self.network.classify(batch)
        torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps_done += 1
        self.follow()
        return {name: float(value.detach()) for name, value in losses.items()}

    def pace(self) -> float:
        """The share of the peak rate at this pool: a linear rise, a plateau, a linear fall."""
        rise = (self.pools_done + 1) / self.recipe.warming
        fall = (self.total_pools - self.pools_done) / self.recipe.cooling
        return max(0.02, min(1.0, rise, fall))

    @torch.no_grad()
    def follow(self) -> None:
        """The running average of the weights, which is what is shipped."""
        keep = min(self.recipe.averaging, (1 + self.steps_done) / (10 + self.steps_done))
        current = self.network.classifier.state_dict()
        names = [name for name, value in current.items() if value.is_floating_point()]
        torch._foreach_lerp_([self.average[n] for n in names], [current[n] for n in names], 1 - keep)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"

    def save(self, losses: dict[str, float]) -> None:
        state = {
            "network": self.network.state_dict(),
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "pools": self.pools_done,
            "steps": self.steps_done,
        }
        passing = self.checkpoint.with_suffix(".new")
        torch.save(state, passing)
        os.replace(passing, self.checkpoint)
        with open(self.folder / "losses.jsonl", "a", encoding="utf-8") as log:
            log.write(json.dumps({"pools": self.pools_done} | losses) + "\n")

    def restore(self) -> None:
        if not self.checkpoint.exists():
            return
        state: dict[str, Any] = torch.load(self.checkpoint, weights_only=True)
        self.network.load_state_dict(state["network"])
        self.average = state["average"]
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        self.pools_done, self.steps_done = state["pools"], state["steps"]

    def export(self, target: Path) -> None:
        """The averaged weights in float16, the configuration and the tokenizer; nothing else is needed to use it."""
        model = RobertaPreLayerNormForSequenceClassification(self.network.classifier.config)
        model.load_state_dict({name: value.half() for name, value in self.average.items()}, assign=True)
        model.save_pretrained(target)
        self.tokenizer.save_pretrained(target)
        (self.folder / "recipe.json").write_text(json.dumps(asdict(self.recipe), indent=1) + "\n", encoding="utf-8")


def half_precision() -> AbstractContextManager[Any]:
    """bfloat16 for the products: twice as fast on processors that have it."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=torch.backends.cpu.get_cpu_capability() == "AVX512")


def main(arguments: list[str] | None = None) -> Score:
    parser = argparse.ArgumentParser(prog="python -m experiments.verb_number.train", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a smoke test of seconds, on generated data alone")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "verb_number", help="where runs are kept")
    parser.add_argument("--threads", type=int, default=1, help="another number may round the weights differently")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    recipe = RECIPES["small" if options.small else "full"]
    data = shared_folder() if recipe.use_data else None
    if data is None and recipe.use_data:
        print("no shared data found: training on the generated language alone")
        recipe = replace(recipe, use_data=False)  # another recipe, so another run's folder
    training = Training(recipe, options.runs, data)
    training.run()
    training.export(training.folder / "model")
    score = evaluate(training.folder / "model", training.sources.held_out)
    print(f"{training.folder / 'model'}, on its held-out rows:\n{score.table()}")
    return score


if __name__ == "__main__":
    main()
