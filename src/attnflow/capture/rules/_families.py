"""Where a model's layers keep what edge rules need: one line a family.

An attention call hands over queries, keys, values and weights. What its result becomes lies in the layer around it: which
module projects the heads back to the residual stream, what lies between that and the sum, which norms the sum passes. None
of that follows from the modules' names alone (BART and mBART name all alike and differ in where the norm stands), so it
is written down here.

To add a family: look up the class of its layers (`type(model.model.layers[0]).__name__`), add a line, and run
`tests/capture/rules`, which checks that the parts of a layer add up to what it computes. At run time,
`capture.rules.FAMILIES.append(Family(…))` does the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Family:
    """One attention of the layers of these classes; all other names are paths within the layer.

    `attention` makes the call, `projection` maps its heads to the residual stream. `before`: the norm that reads the
    stream on the way to the attention (pre-norm; its input is what the residual connection carries). `after`: the norm
    that reads the sum of the two (post-norm). With neither, the layer's own input is carried. `branch`: what the
    projected result passes before the sum (a norm, a scale). `end`: a norm that the layer's output passes, which counts
    for the layer's last attention (post-norm). `when`: the line holds for layers with this attribute ("not x": without).
    """

    layers: str
    attention: str
    projection: str
    before: str = ""
    after: str = ""
    branch: str = ""
    end: str = ""
    when: str = ""


_BART_POST = "BartEncoderLayer MarianEncoderLayer PLBartEncoderLayer"
_BART_POST_DECODER = "BartDecoderLayer MarianDecoderLayer PLBartDecoderLayer"
_BART_PRE = "MBartEncoderLayer PegasusEncoderLayer WhisperEncoderLayer BlenderbotEncoderLayer M2M100EncoderLayer"
_BART_PRE_DECODER = (
    "MBartDecoderLayer PegasusDecoderLayer WhisperDecoderLayer BlenderbotDecoderLayer M2M100DecoderLayer"
)
_LLAMA = (
    "LlamaDecoderLayer MistralDecoderLayer MixtralDecoderLayer MinistralDecoderLayer Qwen2DecoderLayer Qwen2MoeDecoderLayer "
    "Qwen3DecoderLayer Qwen3MoeDecoderLayer GemmaDecoderLayer GptOssDecoderLayer OlmoDecoderLayer OlmoeDecoderLayer "
    "Qwen2VLDecoderLayer Qwen2_5_VLDecoderLayer Phi3DecoderLayer Starcoder2DecoderLayer StableLmDecoderLayer SmolLM3DecoderLayer SeedOssDecoderLayer"
)

# fmt: off
FAMILIES: list[Family] = [
    # post-norm encoders
    Family("BertLayer RobertaLayer XLMRobertaLayer CamembertLayer ElectraLayer ErnieLayer Data2VecTextLayer", "attention.self", "attention.output.dense", after="attention.output.LayerNorm", end="output.LayerNorm"),
    Family("BertLayer RobertaLayer XLMRobertaLayer CamembertLayer ElectraLayer ErnieLayer Data2VecTextLayer", "crossattention.self", "crossattention.output.dense", after="crossattention.output.LayerNorm", end="output.LayerNorm"),
    Family("TransformerBlock", "attention", "attention.out_lin", after="sa_layer_norm", end="output_layer_norm"),  # DistilBERT
    Family("AlbertLayer", "attention", "attention.dense", after="attention.LayerNorm", end="full_layer_layer_norm"),
    # pre-norm encoders
    Family("RobertaPreLayerNormLayer", "attention.self", "attention.output.dense", before="attention.LayerNorm"),
    Family("RobertaPreLayerNormLayer", "crossattention.self", "crossattention.output.dense", before="crossattention.LayerNorm"),
    Family("ModernBertEncoderLayer", "attn", "attn.Wo", before="attn_norm"),
    # images
    Family("ViTLayer DeiTLayer ViTMSNLayer IJepaLayer", "attention", "attention.o_proj", before="layernorm_before"),
    Family("YolosLayer", "attention.attention", "attention.output.dense", before="layernorm_before"),
    Family("Dinov2Layer Dinov2WithRegistersLayer DINOv3ViTLayer", "attention", "attention.o_proj", before="norm1", branch="layer_scale1"),
    Family("CLIPEncoderLayer SiglipEncoderLayer", "self_attn", "self_attn.out_proj", before="layer_norm1"),
    # decoders
    Family("GPT2Block", "attn", "attn.c_proj", before="ln_1"),
    Family("GPT2Block", "crossattention", "crossattention.c_proj", before="ln_cross_attn"),
    Family("GPTNeoXLayer", "attention", "attention.dense", before="input_layernorm"),
    Family(_LLAMA, "self_attn", "self_attn.o_proj", before="input_layernorm"),
    Family("Gemma2DecoderLayer Gemma3DecoderLayer", "self_attn", "self_attn.o_proj", before="input_layernorm", branch="post_attention_layernorm"),
    Family("Olmo2DecoderLayer Olmo3DecoderLayer", "self_attn", "self_attn.o_proj", branch="post_attention_layernorm"),
    Family("OPTDecoderLayer", "self_attn", "self_attn.out_proj", before="self_attn_layer_norm", when="do_layer_norm_before"),
    Family("OPTDecoderLayer", "self_attn", "self_attn.out_proj", after="self_attn_layer_norm", end="final_layer_norm", when="not do_layer_norm_before"),
    Family("PhiDecoderLayer", "self_attn", "self_attn.dense", before="input_layernorm"),
    Family("JambaAttentionDecoderLayer", "self_attn", "self_attn.o_proj", before="input_layernorm"),
    # encoder and decoder
    Family(_BART_POST, "self_attn", "self_attn.out_proj", after="self_attn_layer_norm", end="final_layer_norm"),
    Family(_BART_POST_DECODER, "self_attn", "self_attn.out_proj", after="self_attn_layer_norm", end="final_layer_norm"),
    Family(_BART_POST_DECODER, "encoder_attn", "encoder_attn.out_proj", after="encoder_attn_layer_norm", end="final_layer_norm"),
    Family(f"{_BART_PRE} {_BART_PRE_DECODER}", "self_attn", "self_attn.out_proj", before="self_attn_layer_norm"),
    Family(_BART_PRE_DECODER, "encoder_attn", "encoder_attn.out_proj", before="encoder_attn_layer_norm"),
    Family("T5Block MT5Block UMT5Block", "layer.0.SelfAttention", "layer.0.SelfAttention.o", before="layer.0.layer_norm"),
    Family("T5Block MT5Block UMT5Block", "layer.1.EncDecAttention", "layer.1.EncDecAttention.o", before="layer.1.layer_norm"),
]
# fmt: on


@dataclass(frozen=True, eq=False)
class Sublayer:
    """One attention of a model at its place: the modules that a family's line names."""

    path: str
    layer: torch.nn.Module
    attention: torch.nn.Module
    projection: torch.nn.Module
    before: torch.nn.Module | None = None
    after: torch.nn.Module | None = None
    branch: torch.nn.Module | None = None
    end: torch.nn.Module | None = None

    @property
    def watched(self) -> tuple[torch.nn.Module, ...]:
        """The modules whose input or output says what the layer did."""
        found = (self.projection, self.before, self.after, self.branch, self.end)
        return tuple(module for module in found if module is not None)


def sublayers_of(model: torch.nn.Module) -> dict[torch.nn.Module, Sublayer | str]:
    """Every attention module of a known family in this model, with what lies around it, or why that was not found."""
    found: dict[torch.nn.Module, Sublayer | str] = {}
    for path, layer in model.named_modules():
        lines = [line for line in FAMILIES if _speaks_of(line, layer)]
        for line in lines:
            attention = _inner(layer, line.attention)
            if attention is not None:
                found[attention] = _placed(line, layer, path, last=line is lines[-1])
    return found


def why_unknown(model: torch.nn.Module, path: str) -> str:
    """What could not be found, for an attention module that no line speaks of."""
    parts = path.split(".")
    above = {part: model.get_submodule(".".join(parts[: i + 1])) for i, part in enumerate(parts)}
    # The layer is what lies in a list of its kind; without a list, the attention itself stands for it.
    layer = next((module for part, module in above.items() if part.isdigit()), model.get_submodule(path))
    return (
        f"{type(layer).__name__} is not in the table of model families, so its output projection, residual connection and "
        "norms could not be found"
    )


def _speaks_of(line: Family, layer: torch.nn.Module) -> bool:
    if type(layer).__name__ not in line.layers.split() or _inner(layer, line.attention) is None:
        return False
    wanted = line.when.removeprefix("not ")
    return not line.when or bool(getattr(layer, wanted, False)) != line.when.startswith("not ")


def _placed(line: Family, layer: torch.nn.Module, path: str, *, last: bool) -> Sublayer | str:
    names = {role: getattr(line, role) for role in ("attention", "projection", "before", "after", "branch", "end")}
    names["end"] = line.end if last else ""
    modules = {role: _inner(layer, name) for role, name in names.items() if name}
    for role, module in modules.items():
        if module is None:
            return (
                f"{type(layer).__name__} has no {names[role]!r}, which its line in the table of model families calls its "
                f"{role}, so that could not be found"
            )
    return Sublayer(".".join(filter(None, (path, line.attention))), layer, **modules)  # type: ignore[arg-type]


def _inner(layer: torch.nn.Module, name: str) -> torch.nn.Module | None:
    try:
        return layer.get_submodule(name)
    except AttributeError:
        return None
