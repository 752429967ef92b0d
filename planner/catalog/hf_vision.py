"""Parameters of a vision tower and its projector, counted from `vision_config` where its fields tell."""

from __future__ import annotations

from planner.catalog.hf_fields import Fields


def vision_params(outer: Fields, hidden: int) -> tuple[int | None, tuple[str, ...]]:
    """Parameters of the towers beside the text model, and a note when they cannot be counted.

    Args:
        outer: the outermost section.
        hidden: width of the text model (elements).

    Returns:
        0 when there is no tower, `None` when there is one whose size the configuration does not tell.
    """
    if any(outer.section(key) is not None for key in ("audio_config", "speech_config")):
        outer.section("vision_config")
        return None, ("has an audio tower whose size is not known",)
    vision = outer.section("vision_config")
    if vision is None:
        return 0, ()
    kind = vision.text("model_type")
    counted = _count(vision, outer, kind, hidden)
    return counted, () if counted is not None else ("has a vision tower whose size its configuration does not tell",)


def vision_kind(outer: Fields) -> str:
    """Family of the vision tower, the first word of its type; empty where there is none or it does not say."""
    vision = outer.section("vision_config")
    return "" if vision is None else vision.text("model_type").partition("_")[0]


BLOCKS = ("hidden_size", "intermediate_size", "patch_size")
NEEDED = {
    "qwen3": (*BLOCKS, "depth", "num_position_embeddings", "out_hidden_size"),
    "qwen2_5_vl": (*BLOCKS, "depth", "out_hidden_size"),
    "siglip": (*BLOCKS, "num_hidden_layers", "image_size"),
    "pixtral": (*BLOCKS, "num_hidden_layers"),
}
"""Fields without which a tower of each kind cannot be counted."""


def _count(vision: Fields, outer: Fields, kind: str, hidden: int) -> int | None:
    family = next((name for name in ("qwen2_5_vl", "siglip", "pixtral") if kind.startswith(name)), "qwen3")
    if not all(vision.has(key) for key in NEEDED[family]):
        return None
    match family:
        case "qwen2_5_vl":
            return _qwen25(vision)
        case "qwen3":
            return _qwen3(vision)
        case "pixtral":
            return _pixtral(vision, outer.integer("spatial_merge_size", default=1), hidden)
    if not outer.has("mm_tokens_per_image"):
        return None
    return _siglip(vision) + vision.integer("hidden_size") * (hidden + 1)


def _merged(vision: Fields) -> int:
    """Width of the patches that become one token."""
    return vision.integer("hidden_size") * vision.integer("spatial_merge_size", default=2) ** 2


def _patch(vision: Fields, channels: str) -> int:
    """Inputs of the patch embedding."""
    frames = vision.integer("temporal_patch_size", default=2)
    return vision.integer(channels, default=3) * frames * vision.integer("patch_size") ** 2


def _qwen3(vision: Fields) -> int:
    """Qwen3-VL and Qwen3.5: LayerNorm blocks, learned positions, one merger and one more per deepstack layer."""
    h, i, out = (vision.integer(key) for key in ("hidden_size", "intermediate_size", "out_hidden_size"))
    merged, deepstack = _merged(vision), len(vision.integers("deepstack_visual_indexes") or ())
    block = 4 * h * h + 4 * h + 2 * h * i + i + h + 4 * h
    merger = merged * merged + merged + merged * out + out
    positions = vision.integer("num_position_embeddings") * h
    norms = 2 * h + deepstack * 2 * merged
    embedding = _patch(vision, "in_channels") * h + h
    return embedding + positions + vision.integer("depth") * block + (1 + deepstack) * merger + norms


def _qwen25(vision: Fields) -> int:
    """Qwen2.5-VL: gated blocks with biases, RMSNorm, rotary positions."""
    h, i, out = (vision.integer(key) for key in ("hidden_size", "intermediate_size", "out_hidden_size"))
    merged = _merged(vision)
    block = 4 * h * h + 4 * h + 3 * h * i + 2 * i + h + 2 * h
    merger = h + merged * merged + merged + merged * out + out
    return _patch(vision, "in_chans") * h + vision.integer("depth") * block + merger


def _siglip(vision: Fields) -> int:
    """SigLIP: LayerNorm blocks with biases, learned positions, no pooling head."""
    h, i = vision.integer("hidden_size"), vision.integer("intermediate_size")
    size, image = vision.integer("patch_size"), vision.integer("image_size")
    block = 4 * h * h + 4 * h + 2 * h * i + i + h + 4 * h
    return 3 * size**2 * h + h + (image // size) ** 2 * h + vision.integer("num_hidden_layers") * block + 2 * h


def _pixtral(vision: Fields, merge: int, hidden: int) -> int:
    """Pixtral: gated blocks without biases, RMSNorm; Mistral 3 projects merged patches through two layers."""
    h, i = vision.integer("hidden_size"), vision.integer("intermediate_size")
    block = 4 * h * h + 3 * h * i + 2 * h
    projector = h + h * merge**2 * h + h * hidden + hidden * hidden
    return 3 * vision.integer("patch_size") ** 2 * h + h + vision.integer("num_hidden_layers") * block + projector
