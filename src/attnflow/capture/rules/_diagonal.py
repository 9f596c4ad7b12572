"""Norms and scales as linear maps, their statistics fixed.

A norm divides each vector by a number that depends on the vector: LayerNorm(u) = γ ⊙ (u − mean u) / σ(u) + β. For a sum
u = Σ u_j, with σ of the whole sum kept fixed, each term has its own part L(u_j) = γ ⊙ (u_j − mean u_j) / σ(u), and the parts
add up (Kobayashi et al. 2021, section 3). RMSNorm is the same without the mean; a scale without σ too.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from attnflow.errors import CaptureError


@dataclass(frozen=True, eq=False)
class Diagonal:
    """u ↦ γ ⊙ (u − mean u if centred) / σ, plus β. σ has one number for each row."""

    gamma: torch.Tensor
    beta: torch.Tensor
    sigma: torch.Tensor
    centred: bool

    def fold(self, vectors: torch.Tensor) -> torch.Tensor:
        """The part that does not depend on the row: everything but the division by σ."""
        centred = vectors - vectors.mean(-1, keepdim=True) if self.centred else vectors
        return centred * self.gamma.to(vectors.dtype)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """The linear map of vectors that belong to these rows, one each."""
        return self.fold(rows) / self.sigma.to(rows.dtype)[:, None]


def diagonal_of(module: torch.nn.Module, came: torch.Tensor, path: str) -> Diagonal | None:
    """The linear part of a norm or scale at these rows (n, width), or None for a module that does nothing.

    What kind of norm it is, is found by trying: the formula whose result is the module's own.
    """
    if isinstance(module, torch.nn.Identity | torch.nn.Dropout):
        return None
    result = module.forward(came)
    came, result = came.double(), result.double()
    given = [getattr(module, name, None) for name in ("weight", "lambda1", "scale", "gamma")]
    weight = next((w.detach().double() for w in given if isinstance(w, torch.Tensor)), torch.ones_like(came[0]))
    bias = getattr(module, "bias", None)
    beta = bias.detach().double() if isinstance(bias, torch.Tensor) else torch.zeros_like(came[0])
    eps = next((float(getattr(module, n)) for n in ("eps", "variance_epsilon") if hasattr(module, n)), 1e-6)
    deviation = (came.var(-1, unbiased=False) + eps).sqrt()
    size = (came.pow(2).mean(-1) + eps).sqrt()
    candidates = [
        Diagonal(weight, beta, deviation, True),
        Diagonal(weight, beta, size, False),
        Diagonal(1 + weight, beta, size, False),  # Gemma
        Diagonal(weight, beta, torch.ones_like(size), False),
    ]
    room = 1e-5 + torch.finfo(_dtype_of(module)).eps * 8
    for one in candidates:
        if torch.allclose(one(came) + beta, result, rtol=room, atol=room * float(result.abs().max())):
            return one
    raise CaptureError(
        f"{path} ({type(module).__name__}) is neither a LayerNorm, an RMSNorm nor a scale, so what a part of its input "
        "contributes to its output is not known. Rules that need only the attention call still work."
    )


def _dtype_of(module: torch.nn.Module) -> torch.dtype:
    return next((parameter.dtype for parameter in module.parameters()), torch.float32)
