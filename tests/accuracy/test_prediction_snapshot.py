"""No prediction changes unseen, and none unsaid.

`snapshot.csv` holds what the planner predicts of its scenarios; each states its price, so that a renewed price list is no
change. A figure that moves by more than 0.1 % fails here until `make docs` renews the file. The file's first line is the
digest of the rest, and CHANGELOG.md repeats it under "Predictions changed": no figure can move without that section.
To add a scenario, add a row that holds its query alone.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from planner.catalog.accelerators import accelerator
from planner.catalog.models import model
from planner.catalog.profile_records import has_kernels
from planner.share import from_link, to_link
from planner.single import plan_of
from planner.specs.model import ExpertFFN, GroupedAttention, LatentAttention, LinearAttention, ModelSpec
from planner.specs.scenario import Scenario

NAME: Final = "tests/accuracy/snapshot.csv"
FIELDS: Final = (
    "tpot_ms", "ttft_ms", "output_tok_s", "weights_bytes", "kv_pool_bytes", "b_max", "usd_per_m_goodput",
)  # fmt: skip
TOLERANCE: Final = 1e-3
"""Relative change of a figure that is none: rounding to five digits and the last bits of other machines stay far below."""
LISTED: Final = 12
SAY: Final = "run `make docs` to renew the snapshot and describe the change in CHANGELOG under 'Predictions changed'"
PASTE: Final = "CHANGELOG.md has the new digest; say under 'Predictions changed' what moved and why"
SECTION: Final = re.compile(
    r"^## Unreleased\n(?:(?!^## ).)*?^### Predictions changed\n(?P<text>.*?)(?=\n###? |\Z)", re.DOTALL | re.MULTILINE
)
LINE: Final = re.compile(r"^Snapshot: .*\n+", re.MULTILINE)

Cells = dict[str, str]
"""The figures of one scenario as written, by field; an empty text where there is none."""
Rows = dict[str, Cells]
"""Figures by query of the scenario."""


@dataclass(frozen=True)
class Change:
    """A figure that moved; `share` is after over before less one, infinite where one of them is missing."""

    scenario: str
    field: str
    before: str
    after: str

    @property
    def share(self) -> float:
        if self.before == self.after:
            return 0.0
        if "" in (self.before, self.after) or float(self.before) == 0.0:
            return float("inf")
        return float(self.after) / float(self.before) - 1.0

    def __str__(self) -> str:
        return f"{self.scenario}  {self.field}: {self.before or 'none'} -> {self.after or 'none'} ({self.share:+.2%})"


def as_rows(text: str) -> Rows:
    """The figures of a snapshot's text."""
    body = csv.DictReader(io.StringIO(text.partition("\n")[2]), restval="")
    return {row["scenario"]: {field: row[field] for field in FIELDS} for row in body}


def as_text(rows: Rows) -> str:
    """A snapshot: its digest, then one line a scenario."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("scenario", *FIELDS))
    writer.writerows((scenario, *cells.values()) for scenario, cells in rows.items())
    return f"# Snapshot: {digest(out.getvalue())}\n{out.getvalue()}"


def digest(body: str) -> str:
    """Eight digits that change with any figure or scenario."""
    return hashlib.sha256(body.encode()).hexdigest()[:8]


def predicted(query: str) -> Cells:
    """The figures of a scenario as predicted now."""
    plan = plan_of(from_link(query))
    values = ((field, getattr(plan, field)) for field in FIELDS)
    return {field: "" if value is None else f"{value:.5g}" for field, value in values}


def changes(before: Rows, after: Rows) -> list[Change]:
    """Every figure that moved by more than the tolerance, the largest first."""
    found = (Change(key, field, before[key][field], after[key][field]) for key in before for field in FIELDS)
    return sorted((each for each in found if abs(each.share) > TOLERANCE), key=lambda each: -abs(each.share))


def renewed(before: Rows, moved: list[Change]) -> Rows:
    """The figures with those that moved; the others stay as they are, so that a difference of versions shows these alone."""
    new = {(each.scenario, each.field): each.after for each in moved}
    return {key: {field: new.get((key, field), cells[field]) for field in FIELDS} for key, cells in before.items()}


def summary(moved: list[Change], count: int) -> str:
    """What moved, field by field, to be pasted."""
    return "\n".join(
        [f"Predictions changed in {len({each.scenario for each in moved})} of {count} scenarios; {PASTE}:"]
        + [_field(field, [each for each in moved if each.field == field]) for field in FIELDS]
    )


def _field(field: str, moved: list[Change]) -> str:
    """The changes of one field."""
    shares = sorted(each.share for each in moved if each.share != float("inf"))
    parts = []
    if shares:
        middle = statistics.median(shares)
        parts.append(f"{len(shares)} changed, median {middle:+.1%}, from {shares[0]:+.1%} to {shares[-1]:+.1%}")
    if len(shares) < len(moved):
        parts.append(f"{len(moved) - len(shares)} from or to none")
    return f"- {field}: {'; '.join(parts) or 'unchanged'}"


def restated(changelog: str, found: str) -> str:
    """The changelog with the digest as the first line of its section on predictions."""
    section = SECTION.search(changelog)
    if section is None:
        pytest.fail("CHANGELOG.md needs '### Predictions changed' under '## Unreleased'", pytrace=False)
    said = LINE.sub("", section["text"]).strip("\n")
    text = f"\nSnapshot: {found}\n" + (f"\n{said}\n" if said else "")
    return changelog[: section.start("text")] + text + changelog[section.end("text") :]


@pytest.fixture
def rows(root: Path) -> Rows:
    return as_rows((root / NAME).read_text(encoding="utf-8"))


def test_predictions_are_those_of_the_snapshot(rows, document, remark, request):
    moved = changes(rows, {query: predicted(query) for query in rows})
    if moved and request.config.getoption("--update-docs"):
        remark(summary(moved, len(rows)))
    elif moved:
        listed = "\n".join(map(str, moved[:LISTED]))
        pytest.fail(f"{len(moved)} predictions changed, the largest:\n{listed}\n{SAY}", pytrace=False)
    document(NAME, as_text(renewed(rows, moved)))


def test_the_changelog_knows_this_snapshot(root, document):
    """A figure that moved changes the digest, and the digest this line of the changelog."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    document("CHANGELOG.md", restated(text, digest((root / NAME).read_text(encoding="utf-8").partition("\n")[2])))


# --- what the scenarios cover -----------------------------------------------------------------------


def kinds(found: ModelSpec) -> set[str]:
    """What a model is made of."""
    attention = [group.attention for group in found.groups]
    return {
        "MoE" if any(isinstance(group.ffn, ExpertFFN) for group in found.groups) else "dense",
        *({"MLA"} if any(isinstance(each, LatentAttention) for each in attention) else ()),
        *({"hybrid"} if any(isinstance(each, LinearAttention) for each in attention) else ()),
        *({"sliding"} if any(isinstance(each, GroupedAttention) and each.window for each in attention) else ()),
    }


def layouts(asked: Scenario) -> set[str]:
    """How a scenario spreads over devices."""
    return {
        *(name for name in ("tp", "pp", "cp", "dcp") if getattr(asked, name) > 1),
        *(("dp+ep",) if asked.dp > 1 and asked.ep > 1 else ()),
        *(("two pools",) if asked.prefill == "disaggregated" else ()),
    }


@pytest.fixture
def asked(rows: Rows) -> list[Scenario]:
    return [from_link(query) for query in rows]


def test_each_scenario_is_spelt_as_links_are_and_states_its_price(rows):
    assert [query for query in rows if to_link(from_link(query)) != f"?{query}"] == []
    assert [query for query in rows if from_link(query).price is None] == []


def test_every_engine_has_fitted_and_borrowed_accelerators(asked):
    """No kernels of Ascend were timed: vLLM-Ascend borrows always."""
    own = {(each.engine, has_kernels(each.gpu)) for each in asked if each.profile == "measured"}
    assert own == {*((engine, fitted) for engine in ("vllm", "sglang", "trtllm") for fitted in (True, False))} | {
        ("vllm-ascend", False)
    }
    assert {accelerator(each.gpu).vendor for each in asked} >= {"NVIDIA", "AMD", "Huawei", "Intel"}


def test_every_kind_of_model_is_there_on_fitted_and_borrowed_accelerators(asked):
    found = {(kind, has_kernels(each.gpu)) for each in asked for kind in kinds(model(each.model))}
    assert found == {(k, own) for k in ("dense", "MoE", "MLA", "hybrid", "sliding") for own in (True, False)}


def test_every_precision_layout_and_profile_is_there(asked):
    assert {each.weights for each in asked} == {"bf16", "fp8", "fp8-block", "int8", "int4", "nvfp4", "mxfp4"}
    assert {each.kv for each in asked} == {"bf16", "fp8", "int8"}
    assert set.union(*map(layouts, asked)) == {"tp", "pp", "cp", "dcp", "dp+ep", "two pools"}
    assert {each.profile for each in asked} == {"measured", "textbook"}


# --- that it would be seen --------------------------------------------------------------------------


def one(tpot_ms: str) -> Rows:
    return {"tp=2": {field: tpot_ms if field == "tpot_ms" else "1" for field in FIELDS}}


@pytest.mark.parametrize(
    ("before", "after", "shares"),
    [
        ("50", "50", []),
        ("50", "50.04", []),  # 0.08 %
        ("50", "50.06", [0.0012]),
        ("50", "49.94", [-0.0012]),
        ("50", "", [float("inf")]),
        ("", "50", [float("inf")]),
        ("0", "1", [float("inf")]),
        ("", "", []),
    ],
)
def test_a_change_of_more_than_a_thousandth_is_seen(before, after, shares):
    found = changes(one(before), one(after))
    assert [each.share for each in found] == [pytest.approx(share) for share in shares]
    assert [each.field for each in found] == ["tpot_ms"] * len(shares)


def test_what_has_not_moved_keeps_its_bytes():
    before, after = one("50"), one("50.04")
    assert as_text(renewed(before, changes(before, after))) == as_text(before)


def test_any_figure_changes_the_digest():
    assert as_text(one("50")).splitlines()[0] != as_text(one("50.06")).splitlines()[0]
    assert as_rows(as_text(one("50"))) == one("50")


def test_a_row_of_a_query_alone_is_new():
    """All its figures come from none."""
    found = as_rows(f"\nscenario,{','.join(FIELDS)}\ntp=2\n")
    assert len(changes(found, one("50"))) == len(FIELDS)


def test_the_summary_says_what_moved_by_how_much():
    before = {f"tp={n}": one("100")["tp=2"] for n in (1, 2, 4)}
    after = {"tp=1": one("110")["tp=2"], "tp=2": one("120")["tp=2"], "tp=4": one("")["tp=2"]}
    text = summary(changes(before, after), 3)
    assert text.startswith("Predictions changed in 3 of 3 scenarios")
    assert "- tpot_ms: 2 changed, median +15.0%, from +10.0% to +20.0%; 1 from or to none" in text
    assert "- ttft_ms: unchanged" in text


RELEASED = "\n## 1.0\n\n### Predictions changed\n\nSnapshot: 00000000\n\n- Slower.\n"


@pytest.mark.parametrize("rest", ["", "\n- Faster.\n- Leaner.\n"])
@pytest.mark.parametrize("behind", ["", RELEASED, "\n### Features\n\n- New.\n" + RELEASED])
@pytest.mark.parametrize("before", ["\nSnapshot: 11111111\n", "\nSnapshot: 22222222\n", ""])
def test_the_digest_is_stated_once_in_the_section_of_this_version(before, rest, behind):
    changelog = f"# Log\n\n## Unreleased\n\n### Predictions changed\n{{}}{rest}{behind}"
    assert restated(changelog.format(before), "22222222") == changelog.format("\nSnapshot: 22222222\n")


def test_a_released_version_is_not_restated():
    with pytest.raises(pytest.fail.Exception, match="needs '### Predictions changed' under '## Unreleased'"):
        restated("# Log\n\n## Unreleased\n\n### Features\n\n- New.\n" + RELEASED, "22222222")
