"""From what a user names (a loaded model, a folder, a hub name) to a model, with the tokenizer or processor it needs."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import torch

from attnflow.errors import CaptureError, InvalidArgument


def load(model: Any) -> torch.nn.Module:
    """The model itself, unwrapped (any module of PyTorch), or loaded from a folder or the hub with the class that it was saved with."""
    if isinstance(model, str | os.PathLike):
        return _from_pretrained(os.fspath(model))
    unwrapped = getattr(model, "_orig_mod", model)  # torch.compile
    unwrapped = unwrapped.module if isinstance(unwrapped, torch.nn.DataParallel) else unwrapped
    if not isinstance(unwrapped, torch.nn.Module):
        raise InvalidArgument(f"model must be a loaded model, a folder or a hub name; got a {type(model).__name__}.")
    return unwrapped


def _from_pretrained(name: str) -> torch.nn.Module:
    import transformers

    _check_folder(name)
    config = _loaded(lambda: transformers.AutoConfig.from_pretrained(name), "model", name)
    classes = [
        getattr(transformers, architecture, None) for architecture in getattr(config, "architectures", None) or ()
    ]
    found = next((known for known in classes if known is not None), transformers.AutoModel)
    model: torch.nn.Module = _loaded(lambda: found.from_pretrained(name), "model", name)
    return model.eval()


def tokenizer_for(model: Any, tokenizer: Any, name: str | None) -> Any:
    """The tokenizer given, or the one that lies with the model."""
    if tokenizer is not None and not isinstance(tokenizer, str | os.PathLike):
        if not callable(tokenizer):
            raise InvalidArgument(
                f"tokenizer must be a loaded tokenizer, a folder or a hub name; got {tokenizer!r:.40}."
            )
        return tokenizer
    return _beside(model, tokenizer, name, "tokenizer", "AutoTokenizer")


def processor_for(model: Any, processor: Any, name: str | None) -> Any:
    """The processor given, or the one that lies with the model."""
    if processor is not None and not isinstance(processor, str | os.PathLike):
        return processor
    return _beside(model, processor, name, "processor", "AutoProcessor")


def _beside(model: Any, given: Any, name: str | None, what: str, auto: str) -> Any:
    import transformers

    place = os.fspath(given) if given is not None else name or getattr(model, "name_or_path", "")
    if not place:
        raise CaptureError(
            f"this {type(model).__name__} was not loaded from a folder or the hub, so its {what} is not known. Pass {what}=…, or {_INSTEAD[what]}."
        )
    _check_folder(place)
    if os.path.isdir(place) and not _has(place, what):
        raise CaptureError(
            f"the folder {place!r} holds no {what}. Pass {what}=…, or save one there with save_pretrained()."
        )
    return _loaded(lambda: getattr(transformers, auto).from_pretrained(place), what, place)


_INSTEAD = {"tokenizer": "token ids", "processor": "a tensor of the values that it would make"}


def _has(folder: str, what: str) -> bool:
    """Without such a file transformers makes a tokenizer that knows no word, instead of an error."""
    signs = {
        "tokenizer": ("tokenizer", "vocab", "spiece", "sentencepiece", "merges", "source.spm"),
        "processor": ("processor", "preprocessor"),
    }
    files = os.listdir(folder)
    return any(name.startswith(signs[what]) or name.endswith((".model", ".gguf")) for name in files)


def _check_folder(name: str) -> None:
    looks_local = name.startswith((".", "~", os.sep)) or os.path.isabs(name) or name.count("/") > 1
    if looks_local and not os.path.isdir(name):
        raise CaptureError(f"there is no folder {name!r}.")
    if os.path.isdir(name) and not os.path.exists(os.path.join(name, "config.json")):
        raise CaptureError(f"the folder {name!r} holds no model: there is no config.json in it.")


def _loaded(load: Callable[[], Any], what: str, name: str) -> Any:
    try:
        return load()
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        where = "the folder" if os.path.isdir(name) else "the hub (or the local cache)"
        hint = (
            f"Pass {what}=… with one that fits."
            if os.path.isdir(name)
            else "If this machine is offline, download it elsewhere with save_pretrained() and give that folder."
        )
        raise CaptureError(f"could not load the {what} {name!r} from {where}: {reason} {hint}") from error


def device_of(model: torch.nn.Module) -> torch.device:
    """Where the model's first weight is, so where its input goes."""
    devices = [parameter.device for parameter in model.parameters()]
    real = next((device for device in devices if device.type != "meta"), None)
    if devices and real is None:
        raise CaptureError(
            f"the {type(model).__name__} is on the meta device: it has shapes and no weights. Load them with from_pretrained() first."
        )
    return real or torch.device("cpu")


def check_weights(model: torch.nn.Module) -> None:
    """Refuse NaN in the weights: torch's own attention may skip it, and give numbers that look like an answer."""
    for name, parameter in model.named_parameters():
        if not parameter.is_meta and not parameter.detach().sum(dtype=torch.float32).isfinite():
            raise CaptureError(
                f"the weights of {type(model).__name__} hold NaN or infinity, at {name}. Load the model again, from a file that is whole."
            )


def takes(model: torch.nn.Module, name: str) -> bool:
    """Whether the model's forward has this argument."""
    return name in inspect.signature(model.forward).parameters


def length_limit(model: Any, tokenizer: Any, side: str = "encoder") -> int | None:
    """The most tokens that the model takes, or None where nothing says so."""
    config = model.config
    config = config.get_text_config(decoder=side == "decoder") if hasattr(config, "get_text_config") else config
    limits = []
    names = ("max_target_positions",) if side == "decoder" else ()
    for name in (*names, "max_position_embeddings"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0 and not _relative(config):
            limits.append(value)
    table = _position_table(model)
    if table is not None and side == "encoder":
        limits.append(table)
    promised = getattr(tokenizer, "model_max_length", None)
    if isinstance(promised, int) and promised < 10**6:  # larger values mean "not known"
        limits.append(promised)
    return min(limits, default=None)


def check_length(model: Any, tokenizer: Any, count: int, what: str, side: str = "encoder") -> None:
    """Refuse what is longer than the model's positions reach, before the model fails over it in words of its own."""
    most = length_limit(model, tokenizer, side)
    if most is not None and count > most:
        taker = "the decoder" if side == "decoder" else "the model"
        raise CaptureError(f"{what} {count} tokens, {taker} takes at most {most}. Shorten it.")


def _relative(config: Any) -> bool:
    """Models whose positions are relative set the number, but take any length."""
    return getattr(config, "model_type", "") in {"t5", "mt5", "umt5", "xlnet", "bloom", "mpt"} or bool(
        getattr(config, "alibi", False)
    )


def _position_table(model: torch.nn.Module) -> int | None:
    """RoBERTa-like tables start counting after the padding index."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            return module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
    return None


def token_table(model: Any) -> Any:
    """The layer that looks up the vectors of tokens (or cuts patches); of a model with two towers, the text's. None if unknown."""
    try:
        return model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    except NotImplementedError:
        text = getattr(model, "text_model", None)
        return None if text is None or text is model else token_table(text)


def check_ids(model: Any, ids: list[int], tokenizer: Any) -> None:
    """Token ids that the model has no embedding for come from another model's tokenizer."""
    table = token_table(model)
    count = getattr(table, "num_embeddings", None)
    if count is None or not ids:
        return
    worst = max(ids) if max(ids) >= count else min(ids)
    if not 0 <= worst < count:
        whose = "the tokenizer does not fit the model" if tokenizer is not None else "the ids do not fit the model"
        raise CaptureError(
            f"{whose}: it gives token id {worst}, and {type(model).__name__} knows ids 0 to {count - 1}."
        )
