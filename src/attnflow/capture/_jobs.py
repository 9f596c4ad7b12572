"""The common course of every capture: read the inputs, borrow the model, run batch after batch, finish each item."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch

from attnflow.capture._batch import Batch, from_keywords, padded
from attnflow.capture._foreign import arguments_of, batch_of, is_foreign, run
from attnflow.capture._generate import continued, with_decoder
from attnflow.capture._image_text import TOWERS, family_of
from attnflow.capture._images import image_batches, image_kind, is_image, sees_only, shots_of
from attnflow.capture._inputs import Sample, kind_of, samples_of
from attnflow.capture._levels import Level, levels_of
from attnflow.capture._models import check_length, length_limit, load, processor_for, takes, tokenizer_for
from attnflow.capture._query import is_causal
from attnflow.capture._run import Reader, levels
from attnflow.capture._session import borrowed
from attnflow.capture._shown_and_read import is_pair, is_shown, scenes_of
from attnflow.capture._targets import per_input
from attnflow.errors import CaptureError, InvalidArgument

Result = TypeVar("Result")


@dataclass(frozen=True)
class Setting:
    """What a caller chose about input and run."""

    tokenizer: Any = None
    processor: Any = None
    target: Any = None
    generate: int | None = None
    words: bool = False
    truncate: bool = False
    batch_size: int = 8
    tokens: Any = None  # of a module from outside transformers
    cross: Any = None


@dataclass(frozen=True, eq=False)
class Job:
    """A loaded model, the tokenizer that labels its input, the batch that was just run, and what read it."""

    model: Any
    tokenizer: Any
    batch: Batch
    reader: Reader

    @cached_property
    def causal(self) -> bool:
        """Whether it is a decoder, which takes a walk through all modules to know."""
        return is_causal(self.model)


def each(
    model: Any,
    inputs: Any,
    setting: Setting,
    reader: Callable[[], Reader],
    finish: Callable[[Job, list[Level], int], Result],
) -> Result | list[Result]:
    """`finish` for each input, in order; a list if the input was one."""
    if isinstance(model, torch.nn.Module) and is_foreign(load(model)):
        return _each_foreign(load(model), inputs, setting, reader, finish)
    if setting.tokens is not None or setting.cross is not None:
        raise InvalidArgument(
            "tokens and cross are for modules from outside transformers; of this model they are known."
        )
    loaded, tokenizer, kind, source = opened(model, inputs, setting)
    results: list[Result] = []
    with borrowed(loaded):
        for batch in batches(loaded, source, kind, tokenizer, setting):
            count = len(results)
            targets = per_input(setting.target, _total(source, batch))[count : count + batch.size]
            reading = reader()
            found = levels(loaded, batch, reading, targets=targets, tokenizer=tokenizer)
            job = Job(loaded, tokenizer, batch, reading)
            results += [finish(job, found, item) for item in range(batch.size)]
    single = not kind.startswith("many ") and len(results) == 1
    return results[0] if single else results


def _each_foreign(
    model: torch.nn.Module,
    inputs: Any,
    setting: Setting,
    reader: Callable[[], Reader],
    finish: Callable[[Job, list[Level], int], Result],
) -> Result | list[Result]:
    results: list[Result] = []
    with borrowed(model):
        for arguments in arguments_of(model, inputs, setting.processor):
            reading = reader()
            seen = run(model, arguments, reading, setting.target, setting.cross)
            batch = batch_of(arguments, seen, setting.tokens, model)
            job = Job(model, None, batch, reading)
            found = levels_of(model, seen)
            results += [finish(job, found, item) for item in range(batch.size)]
    return results[0] if len(results) == 1 and not isinstance(inputs, list) else results


def opened(model: Any, inputs: Any, setting: Setting) -> tuple[Any, Any, str, Any]:
    """The loaded model, its tokenizer where one is needed or given, the kind of input, and the input to work on."""
    if isinstance(setting.batch_size, bool) or not isinstance(setting.batch_size, int) or setting.batch_size < 1:
        raise InvalidArgument(f"batch_size must be at least 1, got {setting.batch_size!r}.")
    if getattr(getattr(inputs, "dtype", None), "kind", "") in tuple("OUST"):  # texts in an array or a column of a table
        inputs = inputs.tolist()
    loaded = load(model)
    if is_foreign(loaded):
        raise CaptureError(
            f"{type(loaded).__name__} is no model of transformers, which this needs. capture.graph and capture.stack take any module."
        )
    name = os.fspath(model) if isinstance(model, str | os.PathLike) else None
    if sees_only(loaded):
        kind = image_kind(inputs)
        if kind.endswith("image"):
            return loaded, None, kind, shots_of(loaded, inputs, kind, setting.processor, name)
        return loaded, None, kind, inputs
    family = family_of(loaded)
    if family is not None and (is_pair(inputs) or (isinstance(inputs, list) and inputs and is_pair(inputs[0]))):
        kind = "many scene" if isinstance(inputs, list) else "scene"
        scenes = scenes_of(loaded, inputs, family, setting.processor, name)
        return loaded, _tokenizer_beside(loaded, setting, name), kind, scenes
    if family == TOWERS and not isinstance(inputs, Mapping):
        name = name or getattr(loaded, "name_or_path", None) or None
        part = is_shown(inputs) or (isinstance(inputs, torch.Tensor) and inputs.is_floating_point())
        tower = loaded.vision_model if part else loaded.text_model
        return opened(tower, inputs, replace(setting, **_beside(loaded, setting, name, image=part)))
    if is_image(inputs):
        if family is not None:
            raise CaptureError(f"{type(loaded).__name__} sees and reads: give a pair (image, text).")
        raise CaptureError(f"{type(loaded).__name__} reads no images. Give a vision model, or another input.")
    kind = kind_of(inputs, words=setting.words)
    if kind.endswith("array"):
        inputs, kind = _processed(loaded, inputs, kind, setting, name)
    tokenizer = setting.tokenizer
    if tokenizer is None and setting.processor is not None:
        tokenizer = getattr(setting.processor, "tokenizer", None)
    reads_text = kind.removeprefix("many ") not in ("ids", "keywords")
    if tokenizer is not None or reads_text or name is not None:
        tokenizer = tokenizer_for(loaded, tokenizer, name)
    if kind == "keywords":
        return loaded, tokenizer, kind, inputs
    return loaded, tokenizer, kind, _samples(loaded, inputs, kind, tokenizer, setting)


def _tokenizer_beside(model: Any, setting: Setting, name: str | None) -> Any:
    return setting.tokenizer or processor_for(model, setting.processor, name).tokenizer


def _beside(model: Any, setting: Setting, name: str | None, *, image: bool) -> dict[str, Any]:
    """Tokenizer or processor for one tower, which lie beside the whole model."""
    if image:
        return {"processor": setting.processor or (processor_for(model, None, name) if name else None)}
    given = getattr(setting.processor, "tokenizer", None)
    return {"tokenizer": setting.tokenizer or given or (tokenizer_for(model, None, name) if name else None)}


def _samples(model: Any, inputs: Any, kind: str, tokenizer: Any, setting: Setting) -> list[Sample]:
    limit = length_limit(model, tokenizer)
    if not getattr(model.config, "is_encoder_decoder", False):
        return samples_of(inputs, kind, tokenizer, limit=limit, truncate=setting.truncate)
    if not takes(model, "input_ids"):
        raise CaptureError(
            f"{type(model).__name__} does not read text. Pass its own arguments as a dict, or audio with processor=…."
        )
    pairs = [
        (one if kind.endswith("pair") else (one, None)) for one in (inputs if kind.startswith("many ") else [inputs])
    ]
    sources = [source for source, _ in pairs]
    inner = kind.removeprefix("many ").replace("pair", "text")
    samples = samples_of(sources, f"many {inner}", tokenizer, limit=limit, truncate=setting.truncate)
    made = [with_decoder(model, s, tokenizer, text) for s, (_, text) in zip(samples, pairs, strict=True)]
    for sample in made:
        check_length(model, tokenizer, len(sample.decoder_ids or ()), "the target text has", "decoder")
    return made


def batches(model: Any, source: Any, kind: str, tokenizer: Any, setting: Setting) -> Iterator[Batch]:
    """Batches of the model's arguments, generated text included."""
    if kind.endswith("scene"):
        if setting.generate is not None:
            raise InvalidArgument(
                "generate= needs text alone. Call model.generate yourself and give image and whole text."
            )
        for one in source:
            yield from_keywords(model, one.keywords, tokenizer, [one.pictures])
        return
    if kind.endswith("image"):
        yield from image_batches(model, source, setting.batch_size)
        return
    if kind == "keywords":
        if setting.generate is not None:
            raise InvalidArgument(
                "generate= needs text or token ids. With the model's own arguments, call model.generate yourself and pass the result."
            )
        yield from_keywords(model, source, tokenizer)
        return
    # A classifier on a decoder looks for the padding token to find the last one of the text; without one it cannot batch.
    blind = (
        type(model).__name__.endswith("ForSequenceClassification")
        and getattr(model.config, "pad_token_id", None) is None
    )
    size = 1 if blind else setting.batch_size
    for start in range(0, len(source), size):
        some = source[start : start + size]
        if setting.generate is not None:
            some = [continued(model, sample, tokenizer, setting.generate) for sample in some]
        yield padded(model, some, tokenizer)


def samples_in(model: Any, source: Any, kind: str, tokenizer: Any) -> list[Sample]:
    """Samples one by one, for what changes or repeats an input; the model's own arguments count if they are token ids."""
    if kind.endswith(("image", "scene")):
        raise CaptureError(
            "this changes tokens one by one, and an image has none. Captum works on pixel values as they are."
        )
    if kind != "keywords":
        made: list[Sample] = source
        return made
    batch = from_keywords(model, source, tokenizer)
    if "input_ids" not in batch.keywords or batch.source.kept is None or batch.source.tokens is None:
        raise CaptureError(f"this needs token ids; the model's arguments given are {sorted(source)}.")
    samples = []
    for item in range(batch.size):
        ids, real = batch.keywords["input_ids"][item], batch.source.kept[item]
        types, second = batch.keywords.get("token_type_ids"), batch.keywords.get("decoder_input_ids")
        samples.append(
            Sample(
                [int(ids[i]) for i in np.flatnonzero(real)],
                batch.source.tokens[item],
                None if types is None else [int(types[item][i]) for i in np.flatnonzero(real)],
                None if second is None else second[item].tolist(),
                None
                if second is None or batch.target is None or batch.target.tokens is None
                else batch.target.tokens[item],
            )
        )
    return samples


def _processed(model: Any, inputs: Any, kind: str, setting: Setting, name: str | None) -> tuple[Any, str]:
    """Audio samples as the arguments that the processor makes of them."""
    processor = processor_for(model, setting.processor, name)
    rate = getattr(getattr(processor, "feature_extractor", processor), "sampling_rate", None)
    if rate is None:
        raise CaptureError(f"an array of numbers is read as sound, and {type(processor).__name__} does not read sound.")
    sounds = [np.asarray(one) for one in inputs] if kind.startswith("many ") else np.asarray(inputs)
    return dict(processor(sounds, sampling_rate=rate, return_tensors="pt")), "keywords"


def _total(source: Any, batch: Batch) -> int:
    return len(source) if isinstance(source, list) else batch.size
