"""Speculative decoding: a cheap draft proposes tokens, one pass of the model verifies them all."""

from __future__ import annotations

from dataclasses import dataclass

from planner.formula import formula
from planner.work import ONE, Column


@dataclass(frozen=True)
class Draft:
    """How tokens are drafted.

    Attributes:
        tokens: draft tokens a step.
        accept: chance that a draft token is accepted, given that those before it were.
        cost: time of drafting one token over a decode step of the model.
    """

    tokens: float
    accept: float
    cost: float


@formula(
    "Leviathan et al. 2023 (arXiv:2211.17192): accepted tokens form a geometric series, the verifier adds one", "tokens"
)
def expected_tokens(accept: Column, drafted: Column) -> Column:
    """Tokens that one verification yields; drafted + 1 when all are accepted."""
    certain = accept >= 1.0  # [1]
    left = 1.0 - accept + certain  # [1]
    series = (1.0 - accept ** (drafted + 1.0)) / left  # [tokens]
    return series + certain * (drafted + 1.0)  # [tokens]


@formula("definition: a verification and its drafts, shared by the tokens that they yield", "s")
def verified_seconds(verification: Column, step: Column, drafted: float, cost: float, tokens: Column) -> Column:
    """Time per output token under speculative decoding.

    The verification is a pass with drafted + 1 tokens a sequence: it costs more than a step once the batch is no longer
    bound by reading weights, and in a mixture of experts because more tokens touch more experts.
    """
    drafting = drafted * cost * step  # [s]
    return (verification + drafting) / tokens  # [s]


@formula("the same where a verification costs what a step costs: the limit of small batches", "1")
def small_batch_speedup(accept: Column, drafted: Column, cost: Column) -> Column:
    """Speed-up of speculative decoding at small batches; an upper limit."""
    certain = accept >= 1.0  # [1]
    left = 1.0 - accept + certain  # [1]
    tokens = (1.0 - accept ** (drafted + 1.0)) / left + certain * (drafted + 1.0)  # [tokens]
    return tokens / (drafted * cost + 1.0)  # [1]


def speculative_seconds(step: Column, verification: Column, draft: Draft) -> Column:
    """Time per output token from a decode step and a verification of the same sequences [s]."""
    tokens = expected_tokens(draft.accept * ONE, draft.tokens * ONE)
    return verified_seconds(verification, step, draft.tokens, draft.cost, tokens)
