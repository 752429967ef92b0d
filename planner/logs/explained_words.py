"""Sentences about a log that contradicts a plan. Numbers in them were computed or printed; nothing is guessed."""

from __future__ import annotations

from typing import Final

from planner.logs.supposed import Supposition, Term
from planner.units import GIB

MEANING: Final = {
    "weights": "another weight precision is loaded",
    "kv": "the cache is kept in another precision",
    "tp": "the layout differs",
    "pp": "the layout differs",
    "dp": "the layout differs",
    "ep": "the layout differs",
    "dcp": "the layout differs",
    "spec": "draft layers are loaded, or are not",
    "engine": "the log is of another engine",
    "model": "the log is of another model",
    "util": "the engine was given another share of the memory",
    "max_seqs": "the engine admits another number of sequences at once",
    "max_len": "the engine admits another length",
    "token_budget": "the engine takes another number of tokens in a step",
}
"""What a field's being otherwise means."""


def amount(term: Term, value: float) -> str:
    """A term's value with its unit, as logs print it."""
    if term == "kv_bytes_per_token":
        return f"{value:,.0f} bytes/token"
    if term.endswith("_bytes"):
        return f"{value / GIB:,.2f} GiB"
    return f"{value:,.0f} tokens" if term == "kv_capacity_tokens" else f"{value:,.2f} sequences"


NAMES: Final[dict[Term, str]] = {
    "weights_bytes": "the weights",
    "activation_bytes": "the activation peak",
    "runtime_bytes": "memory outside the framework",
    "graph_bytes": "the graphs",
    "kv_pool_bytes": "the cache pool",
    "kv_bytes_per_token": "the bytes per token",
    "kv_capacity_tokens": "the tokens",
    "max_concurrency": "the concurrency",
}
"""Terms in a sentence."""

NOTHING: Final = "No single change of precision, layout, draft or limits gives what is printed."

UNEXPLAINED: Final[dict[Term, str]] = {
    "graph_bytes": "Graphs depend on the batches that are captured; the plan takes what most logs of its version show.",
    "runtime_bytes": "It depends on driver and links between devices; the plan takes what most logs of its version show.",
}
"""What is said of a term that nothing explains."""


def supposed(term: Term, what: Supposition, value: float, plan: str) -> str:
    """The plan would agree if a field were otherwise; `plan` is how the plan has it."""
    with_it = f"the plan would have {amount(term, value)}"
    if what.logged:
        return f"The log states {what}, the plan has {plan}: with that, {with_it}."
    return f"With {what} instead of {plan}, {with_it}: {MEANING[what.change[-1][0]]}."


def in_part(term: Term, what: Supposition, value: float, plan: str) -> str:
    """What the log states moves the plan, but not all the way; another sentence follows."""
    return f"The log states {what}, the plan has {plan}: with that, the plan would have {amount(term, value)}. "


def ruled(term: Term, name: str, version: str, value: float) -> str:
    """The plan would agree under the rules of the log's version."""
    return (
        f"By the rules of {name} {version} the plan would have {amount(term, value)}; plans follow the newest version."
    )


def under(name: str, version: str, text: str) -> str:
    """A sentence that holds under the rules of the log's version."""
    return f"By the rules of {name} {version}: {text[0].lower()}{text[1:]}"


def follows(causes: tuple[str, ...]) -> str:
    """The difference is that of an earlier line."""
    return f"Follows from what differs above ({'; '.join(causes)})."


def follows_from_terms(terms: tuple[Term, ...]) -> str:
    """The difference is the quotient of earlier ones."""
    return f"Follows from {' and '.join(NAMES[term] for term in terms)} above."


def replicated(tp: int) -> str:
    """Bytes per token are TP times the plan's."""
    return f"{tp} times the plan's, its tp: the KV heads are not divided, as with data-parallel attention."


def padded() -> str:
    """The latent's row is padded."""
    return "640 over 576 elements a row: vLLM 0.7 pads the latent of multi-head latent attention."


def drafted(layers: int) -> str:
    """One layer's cache more."""
    return f"{layers + 1} over {layers} layers: a draft model of one layer keeps a cache of its own."


def grouped(groups: int) -> str:
    """Tokens are counted by groups of layers."""
    return (
        f"{groups} times the plan's: vLLM up to 0.19 divides the tokens by the {groups} groups of its hybrid allocator."
    )


def embedding(surplus: float) -> str:
    """As much as the embedding."""
    return f"{surplus / GIB:,.2f} GiB more, as much as one more copy of the embedding: the output head is kept apart."


def unquantised(surplus: float) -> str:
    """As much as attention in half precision."""
    return f"{surplus / GIB:,.2f} GiB more, as much as attention kept in BF16: the checkpoint does not quantise it."


def tower(surplus: float) -> str:
    """Towers with a size, or of unknown size."""
    return f"{abs(surplus) / GIB:,.2f} GiB {'more' if surplus > 0 else 'less'}, as much as the vision tower."


def pool_term(term: Term, delta: float, planned: float, printed: float) -> str:
    """Most of a pool's difference is one term's."""
    change = f"{printed / GIB:,.2f} GiB against {planned / GIB:,.2f} planned"
    size = f"{abs(delta) / GIB:,.2f} GiB {'less' if delta > 0 else 'more'}"
    return f"{size}, mostly from {NAMES[term]} ({change})."


def pool_graphs(delta: float) -> str:
    """The pool differs by the CUDA graphs."""
    beside = "taken from the share, which the plan leaves to the cache" if delta > 0 else "not taken from the share"
    return f"{abs(delta) / GIB:,.2f} GiB {'less' if delta > 0 else 'more'}, as much as the graphs: they are {beside}."


def profiled(surplus: float) -> str:
    """Activation of a model with a vision tower."""
    return f"{surplus / GIB:,.2f} GiB more: the engine profiles the vision tower on its largest images."


def outside(surplus: float) -> str:
    """Memory outside the framework."""
    return f"{surplus / GIB:,.2f} GiB more outside the framework: another process is on the device, or its buffers."


def pool_taken(taken: float) -> str:
    """Memory was gone before the engine started."""
    return f"{taken / GIB:,.2f} GiB of the device were taken before the start: another process is on it."


def pool_free(delta: float, free: float, planned: float) -> str:
    """Another amount was free before the weights were loaded."""
    size = f"{abs(delta) / GIB:,.2f} GiB {'less' if delta > 0 else 'more'}"
    return f"{size}: {free / GIB:,.2f} GiB were free before loading, the plan expects {planned / GIB:,.2f} GiB."


def other_device(total: float, planned: float) -> str:
    """The device is another one."""
    return f"The log's device has {total / GIB:,.2f} GiB, the plan's {planned / GIB:,.2f} GiB: another accelerator."


def workspace(share: float, left: float, planned: float) -> str:
    """What weights and pool leave of the share."""
    return (
        f"At the log's share of {share:g} weights and cache leave {left / GIB:,.2f} GiB to activations and runtime; "
        f"the plan takes {planned / GIB:,.2f} GiB for them."
    )


def pool_share(share: float) -> str:
    """The share at which the plan's other terms leave the printed pool."""
    return f"The plan's other terms leave this pool at a memory share of {share:.3f}."


def other_length(logged: float, planned: float) -> str:
    """Concurrency is of another length."""
    return f"The log divides by {logged:,.0f} tokens a sequence, the plan by {planned:,.0f}."
