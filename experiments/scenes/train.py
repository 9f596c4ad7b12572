"""Train the scenes model, in minutes: `python -m experiments.scenes.train`.

A small vision transformer with nothing but labels to learn from. The curriculum adds distractors, since a scene full of them
at once gives a new model nothing to hold on to.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from tqdm import tqdm
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

from .draw import DIGITS, FEWEST, MOST, PATCH, SIDE, Scenes, scenes

MODEL = Path(__file__).resolve().parent / "model"  # trained by this file as it is, and kept: 0.4 MB


@dataclass(frozen=True)
class Recipe:
    """Every choice of the training."""

    width: int = 64
    layers: int = 4
    heads: int = 4
    feed_forward: int = 192
    steps: int = 3600
    batch: int = 128
    rate: float = 1.5e-3
    warming: int = 150
    decay: float = 0.05
    averaging: float = 0.998
    crowding: int = 1500  # steps until scenes are as full as they get
    seed: int = 8


def configuration(recipe: Recipe) -> ViTConfig:
    return ViTConfig(
        hidden_size=recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        intermediate_size=recipe.feed_forward,
        image_size=SIDE,
        patch_size=PATCH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(DIGITS)),
        label2id={digit: number for number, digit in enumerate(DIGITS)},
    )


def pixels(drawn: Scenes) -> torch.Tensor:
    """As the model takes them: [n, RGB, row, column] from -1 to 1."""
    return torch.from_numpy(drawn.images).permute(0, 3, 1, 2).float().div_(127.5).sub_(1)


def train(recipe: Recipe, *, quiet: bool = False) -> ViTForImageClassification:
    torch.manual_seed(recipe.seed)
    model: Any = ViTForImageClassification(configuration(recipe))
    model.set_attn_implementation("eager")  # three times as fast as sdpa here: short rows, narrow heads
    average = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.rate, betas=(0.9, 0.98), weight_decay=recipe.decay, fused=True
    )
    with tqdm(range(recipe.steps), unit="step", disable=quiet) as progress:
        for step in progress:
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * pace(step, recipe)
            drawn = lesson(step, recipe)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = model(pixel_values=pixels(drawn)).logits
            labels = torch.from_numpy(drawn.labels)
            loss = functional.cross_entropy(scores.float(), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            current = model.state_dict()
            keep = min(recipe.averaging, (1 + step) / (10 + step))
            torch._foreach_lerp_(list(average.values()), [current[name] for name in average], 1 - keep)
            if step % 50 == 0:
                right = (scores.argmax(-1) == labels).float().mean()
                progress.set_postfix(loss=f"{loss.item():.3f}", right=f"{right.item():.2f}")
    model.load_state_dict(average)
    model.set_attn_implementation("sdpa")
    trained: ViTForImageClassification = model.eval()
    return trained


def lesson(step: int, recipe: Recipe) -> Scenes:
    """The scenes of a step: at first a lone digit, later among as many others as there will be."""
    full = min(1.0, step / recipe.crowding)
    return scenes(recipe.batch, 1_000_000 + step, fewest=round(full * FEWEST), most=round(full * MOST))


def pace(step: int, recipe: Recipe) -> float:
    """The share of the peak rate: a linear rise, then half a cosine."""
    rise = (step + 1) / recipe.warming
    return min(1.0, rise) * (0.01 + 0.99 * (1 + math.cos(math.pi * step / recipe.steps)) / 2)


def save(model: Any, folder: Path) -> None:
    """A folder that transformers and `attnflow explain --model` open; the weights in half precision."""
    model.half().save_pretrained(folder)
    model.float()
    processor().save_pretrained(folder)


def processor() -> ViTImageProcessorPil:
    return ViTImageProcessorPil(size={"height": SIDE, "width": SIDE}, image_mean=[0.5] * 3, image_std=[0.5] * 3)


def load(folder: Path = MODEL) -> Any:
    """The trained model, in single precision."""
    if not (folder / "config.json").is_file():
        raise SystemExit(f"{folder} holds no model. Train it first: make scenes")
    model: Any = ViTForImageClassification.from_pretrained(folder, dtype=torch.float32)
    return model.eval()


@torch.inference_mode()
def accuracy(model: ViTForImageClassification, drawn: Scenes) -> float:
    right = 0
    for start in range(0, len(drawn), 256):
        found = model(pixel_values=pixels(drawn)[start : start + 256]).logits.argmax(-1).numpy()
        right += int((found == drawn.labels[start : start + 256]).sum())
    return right / len(drawn)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.scenes.train", description=__doc__)
    parser.add_argument("--folder", type=Path, default=MODEL)
    parser.add_argument("--threads", type=int, default=1, help="another number may round the weights differently")
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    model = train(Recipe(steps=options.steps))
    save(model, options.folder)
    size = (options.folder / "model.safetensors").stat().st_size
    print(f"{options.folder}: {size:,} bytes, accuracy {accuracy(model, scenes(2000, seed=7)):.4f} on 2,000 new scenes")


if __name__ == "__main__":
    main()
