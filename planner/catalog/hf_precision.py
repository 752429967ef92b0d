"""What a checkpoint's weights are stored in, from `torch_dtype` and `quantization_config`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.catalog.hf_fields import Fields

BLOCK = [128, 128]
"""The one weight block shape that kernels and `Precision` know."""

STORED = {"": "", "bfloat16": "", "float16": "", "float32": "", "bf16": "", "fp16": "", "half": "", "float": ""}
"""Values of `torch_dtype`; anything else is refused."""

FOUR_BITS, EIGHT_BITS = 4, 8
USUAL_GROUP = 128
"""Weights that share a 4-bit scale in `Precision("int4")`."""

FLOAT_GROUPS: Mapping[int | None, str] = {16: "nvfp4", 32: "mxfp4"}
"""Group size of 4-bit floats -> format."""

WEIGHT_ONLY = ("awq", "gptq", "awq_marlin", "gptq_marlin", "auto-round", "auto_round")


@dataclass(frozen=True)
class Storage:
    """How a checkpoint stores its matrices.

    Attributes:
        precision: of the matrices that are quantised (`bf16`: none).
        kept: names that its quantisation leaves at 16 bits, as the configuration lists them.
        experts_only: the method quantises routed experts and nothing else.
        notes: assumptions made.
        group: weights that share a 4-bit integer's scale.
    """

    precision: str = "bf16"
    kept: tuple[str, ...] = ()
    experts_only: bool = False
    notes: tuple[str, ...] = ()
    group: int = USUAL_GROUP


def storage(fields: Fields, outer: Fields, has_experts: bool) -> Storage:
    """Storage of the linear layers; a nested text section's own statement goes first.

    Raises:
        ModelConfigError: an unknown dtype or quantisation method, by key.
    """
    notes = _dtype_notes(fields) or _dtype_notes(outer)
    for place in (fields, outer):
        for key in ("quantization_config", "compression_config"):
            section = place.section(key)
            if section is not None:
                return _quantised(section, has_experts, notes)
    return Storage(notes=notes)


def _dtype_notes(fields: Fields) -> tuple[str, ...]:
    stated = fields.text("dtype") or fields.text("torch_dtype")
    name = stated.removeprefix("torch.")
    if name not in STORED:
        raise fields.refuse("dtype" if fields.has("dtype") else "torch_dtype", "is not a dtype that can be sized")
    if name in ("float32", "float"):
        return ("stored as float32; engines load it as bfloat16 and so it is sized, at 2 bytes a parameter",)
    return ()


def _quantised(section: Fields, has_experts: bool, notes: tuple[str, ...]) -> Storage:
    precision, size = _method(section)
    if precision == "mxfp4" and not has_experts:
        raise section.refuse("quant_method", "mxfp4 is understood for routed experts only, and this model has none")
    kept = [name for key in ("ignore", "modules_to_not_convert", "exclude_modules") for name in section.strings(key)]
    group = size if precision == "int4" and size and size > 0 else USUAL_GROUP
    return Storage(precision, tuple(kept), precision == "mxfp4", notes, group)


def _method(section: Fields) -> tuple[str, int | None]:
    """Precision, and how many weights share a scale where that is stated."""
    method = section.text("quant_method").lower()
    if not method and (section.has("quant_algo") or section.has("producer")):
        method = "modelopt"
    if method in ("fp8", "fbgemm_fp8"):
        return _fp8(section), None
    if method in WEIGHT_ONLY:
        return _weight_only(section)
    if method in ("modelopt", "modelopt_fp4"):
        return _modelopt(section), None
    if method == "mxfp4":
        return "mxfp4", None
    if method == "compressed-tensors":
        return _compressed_tensors(section)
    raise section.refuse("quant_method", "is not a quantisation method that can be sized")


def _fp8(section: Fields) -> str:
    block = section.get("weight_block_size")
    if block is not None and block != BLOCK:
        raise section.refuse("weight_block_size", f"only {BLOCK} is supported")
    return "fp8" if block is None else "fp8-block"


def _weight_only(section: Fields) -> tuple[str, int | None]:
    key = "w_bit" if section.has("w_bit") else "bits"
    if section.integer(key, low=1, high=16) != FOUR_BITS:
        raise section.refuse(key, "only 4-bit weights are supported with this method")
    size = section.synonym(("group_size", "q_group_size"), low=-1)
    return "int4", size


def _modelopt(section: Fields) -> str:
    algorithm = section.text("quant_algo").upper()
    if algorithm not in ("FP8", "NVFP4"):
        raise section.refuse("quant_algo", "only FP8 and NVFP4 are supported")
    return algorithm.lower()


def _compressed_tensors(section: Fields) -> tuple[str, int | None]:
    groups = section.section("config_groups") or section
    names = [key for key in groups.unread() if key.startswith("group_")]
    parents = [group for key in names if (group := groups.section(key)) is not None]
    found = {_group_precision(group, section) for group in parents}
    if len(found) != 1:
        raise section.refuse("config_groups", "must state one weight format")
    return found.pop()


def _group_precision(group: Fields, section: Fields) -> tuple[str, int | None]:
    """Precision and group size of one group of layers."""
    weights = group.section("weights") or group
    bits, kind = weights.integer("num_bits", high=32), weights.text("type", "int")
    size = weights.optional_integer("group_size", low=-1)
    if bits == EIGHT_BITS and kind in ("float", "int"):
        return _eight_bit(weights, kind), None
    if (bits, kind) == (FOUR_BITS, "int") and group.section("input_activations") is None:
        return "int4", size
    if bits == FOUR_BITS and kind == "float" and size in FLOAT_GROUPS:
        return FLOAT_GROUPS[size], size
    raise section.refuse("config_groups", f"{bits}-bit {kind} weights in groups of {size} are not supported")


def _eight_bit(weights: Fields, kind: str) -> str:
    if weights.text("strategy") != "block":
        return "fp8" if kind == "float" else "int8"
    if kind == "int" or weights.get("block_structure") != BLOCK:
        raise weights.refuse("block_structure", f"only {BLOCK} of 8-bit floats is supported")
    return "fp8-block"
