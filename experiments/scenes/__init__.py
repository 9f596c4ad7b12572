"""Scenes: images whose truth is known, and a small vision transformer that learned them.

Each scene is 64 × 64 pixels, 4 × 4 cells. One cell holds a digit, which is the class; four to nine others hold letters and shapes,
which say nothing about it. So whatever a good model says came from the cell of the digit.

    from experiments.scenes import load, pixels, scenes

    model = load()                     # a ViTForImageClassification, right in 99 % of new scenes
    drawn = scenes(100, seed=1)        # drawn.images [100, 64, 64, 3] in bytes, drawn.labels [100]
    drawn.truth(0)                     # [8, 8] booleans: the patches in the deciding cell of scene 0
    drawn.box(0)                       # the same cell in pixels: left, top, right, bottom
    drawn.kinds[0]                     # what is in each of the 16 cells: an index into KINDS, -1 for nothing
    capture.graph(model, pixels(drawn)[0])        # 65 tokens: [CLS] and 64 patches, in `truth`'s order
    explain(drawn.images[0], model, processor=processor())   # the same from the image itself

The model lies in `experiments/scenes/model`; `make scenes` trains it anew, in minutes, and measures the maps.
Training uses seeds from 1,000,000 on; smaller ones are free for measuring.
"""

from .draw import CELL, CELLS, KINDS, PATCH, SIDE, Scenes, scenes
from .train import MODEL, load, pixels, processor

__all__ = ["CELL", "CELLS", "KINDS", "MODEL", "PATCH", "SIDE", "Scenes", "load", "pixels", "processor", "scenes"]
