"""docs/SOURCES.md: what the articles say, what the planner computes, and why the two differ."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import Any

from planner.catalog.article import parameters, quotes
from tests.sources.cases import CASES, FITS, MEASURES

WRITTEN = "<!-- Written by `make docs` from tests/golden/source_cases.json and the code. Do not edit. -->"

VERDICTS = {
    "reproduces": ("same", "the planner prints what the article prints"),
    "rounds": ("rounds", "the same within the article's rounding"),
    "seed_error": ("**error**", "the article is wrong; the right value stands"),
    "ambiguous": ("open", "the article prints no number, or leaves open what it means"),
    "needs_calibration": ("fitted", "the article's number follows from nothing that it states"),
}

QUOTED = ("quoted", "a measurement that the article quotes; nothing here computes it")
RULE = ("rule", "a rule without a number")

CHAPTERS = {
    "G1": "model card", "G2": "parameters", "G3": "experts that a batch reads", "G4": "cache and index", "G5": "operations",
    "G6": "intensity", "G7": "matrix tiles", "G8": "batch", "G9": "gateway",
    "0": "hardware", "1.1": "promise", "1.2": "latency", "1.3": "memory", "2.1": "batching", "2.2": "scheduler",
    "2.3": "chunked prefill", "3.1": "contiguous cache", "3.2": "blocks", "3.3": "use of memory", "3.4": "block size",
    "3.5": "prefix caching", "4.1": "interference", "4.2": "disaggregation", "4.3": "cache transfer", "4.4": "when to",
    "5.1": "speculation", "5.2": "speed-up", "5.3": "measurements", "5.4": "batch", "6.1": "prefill", "6.2": "decode",
    "6.3": "decode over batch", "6.4": "end to end", "7.1": "tensor and pipeline parallel", "7.2": "what fits",
    "7.3": "context parallel", "8.1": "bytes", "8.2": "precisions", "8.3": "accuracy and the 910C", "9.2": "latency",
    "9.3": "capacity", "9.4": "TPOT over batch", "9.5": "FP8", "9.6": "speculation", "9.7": "the 910C", "10": "DeepSeek-V3",
    "10.1": "weights", "10.2": "TP+EP and DP+EP", "10.3": "MLA", "10.4": "exchange", "10.5": "comparison",
    "10.6": "decision tree", "10.7": "rules", "11.1": "checklist", "11.2": "mistakes",
}  # fmt: skip
"""What each section is about."""

COLUMNS = ("case", "quantity", "article", "Headroom", "unit", "", "why")

INTRO = """
Two articles are behind the textbook profile: the *GLM article* (batch and intensity of GLM 5.2; its parts are called
G1 to G9 in reading order) and the *serving article* (a serving model of Llama-70B and of mixtures of experts; sections
0 to 11). Every number of theirs is a case below. Inputs go through the planner's own plans and formulas; `tests/golden`
holds the right values, checked by hand. *Fitted* numbers also have, in brackets, what the constants of
`presets/profiles/article.toml` give: they make the article's tables come out, are not physical, and no plan uses them.
""".strip()


def document() -> str:
    """The whole document as Markdown."""
    parts = ["# What the source articles say, and what Headroom computes", WRITTEN, INTRO, _counts(), *_sections()]
    return "\n\n".join((*parts, _constants(), _quotes())) + "\n"


def _counts() -> str:
    """How many cases have each verdict."""
    numbers = Counter(_mark(case) for case in CASES)
    rows = [(word, meaning, str(numbers[word])) for word, meaning in (*VERDICTS.values(), QUOTED, RULE)]
    return table(("verdict", "meaning", "cases"), rows)


def _sections() -> list[str]:
    """Cases by article and section."""
    ordered = sorted(CASES, key=_place)
    parts, article = [], ""
    for (of, section), cases in itertools.groupby(ordered, key=lambda case: (_article(case), _chapter(case))):
        if of != article:
            parts.append(f"## {of}")
            article = of
        rows = [_row(case) for case in cases]
        parts.append(f"### {section} {CHAPTERS[section]}\n\n" + table(COLUMNS, rows))
    return parts


def _article(case: dict[str, Any]) -> str:
    return case["source"].split(" (")[0]


def _chapter(case: dict[str, Any]) -> str:
    """Section without what the case adds to it: `6.3` for `6.3 table`."""
    return (
        case["id"].removeprefix("S").partition("-")[0] if _article(case).startswith("Serving") else case["section"][:2]
    )


def _place(case: dict[str, Any]) -> tuple[object, ...]:
    """Sections in the order of their numbers; cases as they are listed."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", _chapter(case)))
    return _article(case), numbers, CASES.index(case)


def _row(case: dict[str, Any]) -> tuple[str, ...]:
    if "rule" in case:
        return case["id"], case["says"], "", "", "", _mark(case), case.get("why", "")
    why = case.get("why") or case.get("note", "")
    return case["id"], case["quantity"], _printed(case), _ours(case), case["unit"], _mark(case), why


def _mark(case: dict[str, Any]) -> str:
    """The verdict in a word."""
    if "rule" in case:
        return RULE[0]
    quoted = "quoted" in case and case["verdict"] != "seed_error"
    return QUOTED[0] if quoted else VERDICTS[case["verdict"]][0]


def _printed(case: dict[str, Any]) -> str:
    """What the article prints."""
    if "fit" in case and "article_text" not in case:
        return shown(case["fit"]["article"])
    return shown(next((case[key] for key in ("article_text", "article_wrong", "article") if key in case), "–"))


def _ours(case: dict[str, Any]) -> str:
    """What the planner computes, and what the fitted constants give."""
    name, inputs = case["id"], case["inputs"]
    if "quoted" in case:
        return "–"
    plain = shown(MEASURES[name](inputs)) if name in MEASURES else "–"
    return f"{plain} ({shown(FITS[name](inputs))})" if name in FITS else plain


def _constants() -> str:
    """The fitted constants with where they come from."""
    rows = [
        (f"`{one.name}`", shown(one.value), one.unit, one.tag, one.source, one.note or "–")
        for one in parameters().values()
    ]
    return "## Fitted constants\n\n" + table(("constant", "value", "unit", "tag", "source", "note"), rows)


def _quotes() -> str:
    """Measurements that the article quotes."""
    rows = [
        (
            one.section,
            one.about,
            shown(one.value) if one.low == one.value else f"{shown(one.low)}–{shown(one.value)}",
            one.unit,
        )
        for one in quotes().values()
    ]
    return "## Quoted measurements, not computed\n\n" + table(("section", "what", "value", "unit"), rows)


def shown(value: object) -> str:
    """A number with four digits, or a text as it is."""
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return f"{number:,.0f}" if abs(number) >= 1e4 and abs(number) < 1e9 else f"{number:.4g}"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)
