"""Formats of traces, told apart by their column names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.simulate.trace_tables import Table
from planner.simulate.trace_text import refused
from planner.specs.fields import shown

BLOCK_TOKENS: Final = 512
"""Tokens of one named block of Mooncake's traces (FAST'25 release; arXiv:2407.00079, section 4)."""


@dataclass(frozen=True)
class Format:
    """What a format calls its columns.

    Attributes:
        time, isl, osl: columns that every row has.
        per_second: units of its times in a second; 0 = dates.
        session, prefix, prefix_tokens, hashes: columns that a trace may have; empty = the format has none.
        failures: whether rows without tokens are requests that failed, which are left out.
    """

    id: str
    title: str
    time: str
    isl: str
    osl: str
    per_second: float = 1.0
    session: str = ""
    prefix: str = ""
    prefix_tokens: str = ""
    hashes: str = ""
    failures: bool = False

    @property
    def required(self) -> tuple[str, str, str]:
        """Columns that every row has."""
        return self.time, self.isl, self.osl

    @property
    def optional(self) -> tuple[str, ...]:
        """Columns that a trace may have."""
        return tuple(filter(None, (self.session, self.prefix, self.prefix_tokens, self.hashes)))


FORMATS: Final = (
    Format("azure", "Azure LLM inference trace", "TIMESTAMP", "ContextTokens", "GeneratedTokens", per_second=0.0),
    Format("burstgpt", "BurstGPT", "Timestamp", "Request tokens", "Response tokens", session="Session ID", failures=True),
    Format(
        "mooncake", "Mooncake", "timestamp", "input_length", "output_length", per_second=1000.0, hashes="hash_ids"
    ),
    Format(
        "template", "Headroom's template", "time_s", "input_tokens", "output_tokens",
        session="session", prefix="prefix", prefix_tokens="prefix_tokens",
    ),
)  # fmt: skip
"""Every format that is read; each as CSV or as JSON Lines."""


def format_of(table: Table) -> Format:
    """The format whose columns a table has.

    Raises:
        InputError: when it has none's, naming the columns found and those that the nearest format lacks, or two's.
    """
    found = {name.casefold() for name in table.names}
    lacking = [[name for name in each.required if name.casefold() not in found] for each in FORMATS]
    fitting = [each for each, missing in zip(FORMATS, lacking, strict=True) if not missing]
    if len(fitting) == 1:
        return fitting[0]
    columns = f"columns {shown(', '.join(table.names), 120)}"
    if fitting:
        titles = " and ".join(each.title for each in fitting)
        raise refused(columns, f"are those of {titles}; leave one kind")
    nearest = min(range(len(FORMATS)), key=lambda at: len(lacking[at]))
    if len(lacking[nearest]) == 3:
        raise refused(columns, "must be those of one format: " + "; ".join(_spelt(each) for each in FORMATS))
    missing = ", ".join(lacking[nearest])
    raise refused(columns, f"{missing} is missing; {_spelt(FORMATS[nearest])} must be there, with commas between them")


def _spelt(known: Format) -> str:
    """A format and the columns that it needs."""
    return f"{', '.join(known.required)} ({known.title})"
