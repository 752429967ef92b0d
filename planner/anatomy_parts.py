"""Where a model's parameters are: every one of them in one named part, and how many of it one token multiplies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.specs.model import DenseFFN, ExpertFFN, LayerGroup, Linear, ModelSpec, layer_params

INDEX: Final = "indexer."
"""How names of matrices of a sparse index begin."""

PARTS: Final = (
    "attention", "index", "dense", "shared", "used", "idle", "router", "embedding", "head", "norms", "mtp", "vision",
    "weights",
)  # fmt: skip
"""Parts in the order in which they are shown; `weights` holds all of a teaching model."""


@dataclass(frozen=True)
class Part:
    """Parameters of one kind, and those of them that a token multiplies."""

    name: str
    params: int
    active: int


def parts_of(model: ModelSpec) -> tuple[Part, ...]:
    """The parts that a model has, in the order of `PARTS`; a vision tower of unknown size is left out.

    The embedding table is looked up, not multiplied, unless it is the output head too.
    """
    if model.nominal_params is not None:
        return (Part("weights", model.nominal_params, model.nominal_params),)
    held = dict.fromkeys(PARTS, 0)
    for group in model.groups:
        for name, params in layer_parts(group).items():
            held[name] += group.count * params
    held |= {"embedding": model.embed_params, "head": model.head_params}
    held |= {"mtp": model.mtp_params, "vision": model.vision_params or 0}
    held["norms"] += model.final_params
    still = {"idle", "mtp", "vision"} | (set() if model.tied else {"embedding"})
    return tuple(Part(name, params, 0 if name in still else params) for name, params in held.items() if params)


def layer_parts(group: LayerGroup) -> dict[str, int]:
    """Parameters of one layer by part; vectors (norms, biases) are what the matrices leave."""
    linears = () if group.attention is None else group.attention.linears
    index = tuple(linear for linear in linears if linear.name.startswith(INDEX))
    found = {"attention": _params(linears) - _params(index), "index": _params(index), **_ffn_parts(group)}
    return {**found, "norms": layer_params(group) - sum(found.values())}


def _ffn_parts(group: LayerGroup) -> dict[str, int]:
    """Matrices of a feed-forward block by part; biases of experts count with the experts."""
    match group.ffn:
        case DenseFFN() as dense:
            return {"dense": _params(dense.linears)}
        case ExpertFFN() as ffn:
            used = ffn.top_k * ffn.expert_params
            return {
                "shared": _params(ffn.shared),
                "used": used,
                "idle": ffn.count * ffn.expert_params - used,
                "router": _params(ffn.outer),
            }
        case _:
            return {}


def _params(linears: tuple[Linear, ...]) -> int:
    """Weights of several matrices."""
    return sum(linear.params for linear in linears)
