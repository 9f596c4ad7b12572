"""Models as people write them, none of them from transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class CausalSelfAttention(nn.Module):
    """After nanoGPT (Karpathy): one projection for q, k and v, and torch's attention where it is there."""

    def __init__(self, width: int, heads: int, *, flash: bool) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.flash = heads, flash

    def forward(self, x: Tensor) -> Tensor:
        batch, n, width = x.shape
        q, k, v = (
            part.view(batch, n, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        if self.flash:
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / k.size(-1) ** 0.5)
            scores = scores.masked_fill(torch.ones(n, n).tril()[None, None] == 0, float("-inf"))
            self.weights = functional.softmax(scores, dim=-1)
            y = self.weights @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, n, width))  # type: ignore[no-any-return]


class Block(nn.Module):
    def __init__(self, width: int, heads: int, *, flash: bool) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads, flash=flash)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]


class Config:
    """nanoGPT keeps one too: it must not be taken for that of transformers."""

    n_layer = 3


class NanoGPT(nn.Module):
    def __init__(self, *, flash: bool = True, width: int = 32, heads: int = 4, words: int = 50) -> None:
        super().__init__()
        self.config = Config()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(words, width),
                "wpe": nn.Embedding(64, width),
                "h": nn.ModuleList([Block(width, heads, flash=flash) for _ in range(3)]),
                "ln_f": nn.LayerNorm(width),
            }
        )
        self.lm_head = nn.Linear(width, words, bias=False)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.transformer["wte"](idx) + self.transformer["wpe"](torch.arange(idx.shape[1]))
        for block in self.transformer["h"].children():
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x)[:, [-1]]), None


class ImageAttention(nn.Module):
    """After timm's Attention, with its switch."""

    def __init__(self, dim: int, num_heads: int, *, fused_attn: bool) -> None:
        super().__init__()
        self.num_heads, self.fused_attn = num_heads, fused_attn
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        batch, n, width = x.shape
        q, k, v = (
            self.qkv(x).reshape(batch, n, 3, self.num_heads, width // self.num_heads).permute(2, 0, 3, 1, 4).unbind(0)
        )
        if self.fused_attn:
            x = functional.scaled_dot_product_attention(q, k, v, dropout_p=0.0)
        else:
            self.weights = (q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1)
            x = self.weights @ v
        return self.proj(x.transpose(1, 2).reshape(batch, n, width))  # type: ignore[no-any-return]


class ImageBlock(nn.Module):
    def __init__(self, dim: int, heads: int, *, fused_attn: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = ImageAttention(dim, heads, fused_attn=fused_attn)
        self.mlp = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class PatchEmbed(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, dim, kernel_size=8, stride=8)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]


class TimmViT(nn.Module):
    """After timm's VisionTransformer: class token, register tokens, blocks in a Sequential, a choice of pooling."""

    def __init__(
        self, *, fused_attn: bool = True, registers: int = 2, global_pool: str = "token", dim: int = 32
    ) -> None:
        super().__init__()
        self.patch_embed, self.global_pool = PatchEmbed(dim), global_pool
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.reg_token = nn.Parameter(torch.randn(1, registers, dim)) if registers else None
        self.blocks = nn.Sequential(*[ImageBlock(dim, 4, fused_attn=fused_attn) for _ in range(3)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed(x)
        first = [self.cls_token] if self.reg_token is None else [self.cls_token, self.reg_token]
        x = torch.cat([*(one.expand(len(x), -1, -1) for one in first), x], dim=1)
        x = self.norm(self.blocks(x))
        return self.head(x.mean(dim=1) if self.global_pool == "avg" else x[:, 0])  # type: ignore[no-any-return]


class Windows(nn.Module):
    """Attention within halves of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.whole = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.whole(x, x, x)[0]
        halves = x.reshape(2 * x.shape[0], x.shape[1] // 2, x.shape[2])
        y: Tensor = self.whole(halves, halves, halves)[0]
        return y


def grown(model: Any, seed: int = 0) -> Any:
    """Weights large enough that attention is far from uniform; in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 or name.endswith("bias"):
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.35)
    return model.eval()
