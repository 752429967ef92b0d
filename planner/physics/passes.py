"""What one engine step holds: decoding sequences and prompt tokens."""

from __future__ import annotations

from dataclasses import dataclass

from planner.work import ONE, ZERO, Column


@dataclass(frozen=True)
class Pass:
    """What one engine step holds on one attention rank; every field is a column.

    Attributes:
        sequences: decoding sequences.
        new_tokens: tokens that each of them computes (1; more when verifying a draft).
        context: mean tokens behind each of them.
        prompt_tokens: prompt tokens in this step.
        prompt_behind: prompt tokens already cached before them.
        prompts_ending: prompts whose last token is in this step (they need the output head).
    """

    sequences: Column
    new_tokens: Column
    context: Column
    prompt_tokens: Column
    prompt_behind: Column
    prompts_ending: Column
    everyone: Column | None = None
    """Decoding sequences of all attention ranks of a replica, which share its experts; None = every rank has `sequences`."""
    alone: bool = False
    """One prompt on one attention rank while the others idle; otherwise every attention rank holds the same."""

    @property
    def tokens(self) -> Column:
        """Tokens that an attention rank, or the ranks that share its context, take through every matrix."""
        return self.sequences * self.new_tokens + self.prompt_tokens


def decode_pass(sequences: Column, context: Column, new_tokens: Column = ONE, everyone: Column | None = None) -> Pass:
    """A step that only decodes."""
    return Pass(sequences, new_tokens, context, ZERO, ZERO, ZERO, everyone)


def prefill_pass(tokens: Column, behind: Column = ZERO, ending: Column = ONE) -> Pass:
    """A step that reads a lone prompt."""
    return Pass(ZERO, ONE, ZERO, tokens, behind, ending, alone=True)
