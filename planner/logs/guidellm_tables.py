"""Tables that GuideLLM prints: `Benchmarks Info` and `Benchmarks Stats` (0.2, 0.3), or one a topic (0.4 and later).

From 0.4 on the tables print medians and no mean of the times. Version 0.2 heads request latencies `(ms)` and prints
seconds. Source: vllm-project/guidellm `benchmark/output.py` (v0.2.0, v0.3.0), `benchmark/outputs/console.py` (v0.7.3).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from planner.logs.benchmark_words import Note
from planner.logs.cells import spanned
from planner.logs.conclusions import Run
from planner.logs.figures import SECONDS, Column, figures_of
from planner.logs.guidellm import named_load, run_of
from planner.logs.statements import MOST_POINTS, Statement, Statements, refusal

COLUMNS: Final = (
    Column("mean_concurrency", ("Request Stats|Concurrency", "Requests|Concurrency|Mean")),
    Column("served_rate", ("Request Stats|Per Second", "Requests|Per Sec|Mean")),
    Column("isl", ("Prompt Tok/Req|Comp", "Input Tok|Per Req|Mean", "Input Tok|Per Req|Mdn")),
    Column("osl", ("Output Tok/Req|Comp", "Output Tok|Per Req|Mean", "Output Tok|Per Req|Mdn")),
    Column("tpot_ms", ("ITL (ms)|mean", "ITL|ms|Mean")),
    Column("ttft_ms", ("TTFT (ms)|mean", "TTFT|ms|Mean")),
    Column("e2e_ms", ("Req Latency (ms)|mean", "Req Latency (sec)|mean", "Request Latency|Sec|Mean"), SECONDS),
    Column("tpot_median_ms", ("ITL (ms)|median", "ITL|ms|Mdn")),
    Column("ttft_median_ms", ("TTFT (ms)|median", "TTFT|ms|Mdn")),
    Column("tpot_p99_ms", ("ITL (ms)|p99",)),
    Column("ttft_p99_ms", ("TTFT (ms)|p99",)),
    Column("output_tok_s", ("Out Tok/sec|mean", "Output Tokens|Per Sec|Mean")),
    Column("requests", ("Requests Made|Comp",)),
    Column("failed", ("Requests Made|Err",)),
)

_TITLE: Final = re.compile(
    r"[^A-Za-z]{0,8}(Benchmarks Info:|Benchmarks Stats:|Request Token Statistics \(Completed Requests\)"
    r"|Request Latency Statistics \(Completed Requests\)|Server Throughput Statistics \(All Requests\))\s*"
)
_ANY_TITLE: Final = re.compile(rf"^{_TITLE.pattern}$", re.MULTILINE)
_EDGE: Final = re.compile(r"\|?=[=|]{8,}")
_RULE: Final = re.compile(r"\|?-[-|]{8,}")
_NEEDED: Final = ("Benchmarks Stats:", "Request Latency Statistics (Completed Requests)")
_OLD_LATENCY: Final = "Req Latency (ms)|mean"
_LONGEST: Final = 4000


@dataclass(frozen=True)
class _Table:
    title: str
    line: int
    rows: tuple[Statements, ...]


def is_table(text: str) -> bool:
    """Whether a text holds a table of GuideLLM."""
    return _ANY_TITLE.search(text) is not None


def table_runs(text: str) -> tuple[Run, ...]:
    """The runs of the tables of one report; the n-th rows of its tables are one run.

    Raises:
        InputError: for a table that is cut off or missing, or a figure that cannot be believed.
    """
    lines = [line[:_LONGEST].rstrip() for line in text.splitlines()]
    places = [(match[1], place) for place, line in enumerate(lines) if (match := _TITLE.fullmatch(line))]
    titles = [title for title, _ in places]
    if len(set(titles)) < len(titles):
        raise refusal("tables of two reports", "read one report at a time", places[-1][1] + 1)
    tables = tuple(_table(title, place + 1, lines[place + 1 :]) for title, place in places)
    if not any(title in _NEEDED for title in titles):
        raise refusal("tables without the latencies", f"the table {_NEEDED[1]} is missing")
    if len({len(table.rows) for table in tables}) > 1:
        raise refusal(
            "tables of different lengths", "each needs one row a benchmark; paste them whole", tables[-1].line
        )
    return tuple(_run(rows) for rows in zip(*(table.rows for table in tables), strict=True))


def _run(rows: tuple[Statements, ...]) -> Run:
    said = Statements(rows[-1].line, tuple(row for table in rows for row in table.rows))
    strategy = said.text("Metadata|Benchmark", "Benchmark|Strategy|")
    notes: tuple[Note, ...] = ("seconds",) if said.find(_OLD_LATENCY) else ()
    lengths: tuple[Note, ...] = ("median_lengths",) if said.find("Input Tok|Per Req|Mdn") else ()
    return run_of(said.line, named_load(figures_of(said, COLUMNS), strategy), (*notes, *lengths))


def _table(title: str, line: int, below: list[str]) -> _Table:
    """The table under a title: an edge, header rows, a rule, one row a benchmark, an edge."""
    edges = [place for place, text in enumerate(below) if _EDGE.fullmatch(text.strip())][:2]
    if len(edges) < 2 or edges[0] > 2:
        raise refusal(f"{title} without its edges of =", "it is cut off; paste it whole", line)
    inside = below[edges[0] + 1 : edges[1]]
    rule = next((place for place, text in enumerate(inside) if _RULE.fullmatch(text.strip())), None)
    if rule is None or not 2 <= rule <= 3 or rule + 1 == len(inside):
        raise refusal(f"{title} without rows", "it is cut off; paste it whole", line)
    names = _names(inside[:rule])
    first = line + edges[0] + rule + 3
    if len(inside) - rule - 1 > MOST_POINTS:
        raise refusal(title, f"at most {MOST_POINTS:,} rows are read", line)
    return _Table(title, line, tuple(_row(names, text, first + n) for n, text in enumerate(inside[rule + 1 :])))


def _names(heads: list[str]) -> tuple[str, ...]:
    """Names of the columns: the header cells above one another, joined by bars."""
    rows = [spanned(_closed(head)) for head in heads]
    width = max(len(row) for row in rows)
    return tuple("|".join(row[place] if place < len(row) else "" for row in rows) for place in range(width))


def _row(names: tuple[str, ...], text: str, line: int) -> Statements:
    cells = tuple(cell.strip() for cell in _closed(text).split("|"))[:-1]
    if len(cells) != len(names):
        raise refusal(f"number of cells {len(cells)}", f"the header names {len(names)} columns", line)
    return Statements(line, tuple(Statement(name, cell, line) for name, cell in zip(names, cells, strict=True)))


def _closed(text: str) -> str:
    """A row without its left bar and with a right one: rows of old tables have neither."""
    inner = text.strip()
    return inner[1:] if inner.startswith("|") else f"{inner}|"
