"""Everything about a model that a capture must leave as it was."""

from __future__ import annotations

import json
from typing import Any

import torch


def fingerprint(model: Any) -> dict[str, Any]:
    """Comparable by ==: configs and attention, modes, hooks, weights with their gradients, types and places."""
    configs = {id(m.config): m.config for m in model.modules() if hasattr(m, "config")}
    return {
        "configs": [
            (json.dumps(c.to_dict(), sort_keys=True, default=str), c._attn_implementation) for c in configs.values()
        ],
        "generation": str(getattr(model, "generation_config", None)),
        "training": [m.training for m in model.modules()],
        "hooks": [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in model.modules()],
        "forwards": ["forward" in vars(m) for m in model.modules()],
        "weights": {name: _tensor(p) for name, p in model.named_parameters()},
        "buffers": {name: _tensor(b) for name, b in model.named_buffers()},
        "grads": {name: None if p.grad is None else float(p.grad.sum()) for name, p in model.named_parameters()},
        "grad enabled": torch.is_grad_enabled(),
    }


def _tensor(tensor: torch.Tensor) -> tuple[Any, ...]:
    total = float(tensor.detach().double().nan_to_num().sum())
    return tensor.shape, tensor.dtype, tensor.device, tensor.requires_grad, total, tensor.data_ptr()
