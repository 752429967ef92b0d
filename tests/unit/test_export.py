"""CSV and JSON: what is written, and that it reads back as strictly as a link."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest

from planner.errors import InputError
from planner.export import BOM, COLUMNS, DOCUMENT_KEYS, MAX_UPLOAD, from_csv, from_json, to_csv, to_json
from planner.plan import PLAN_FIELDS, CurvePoint, Note
from planner.share import from_link, pinned
from planner.specs.scenario import SCENARIO_FIELDS, Scenario
from tests.samples import PLAN, plan


def cells(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix(BOM), newline="")))


def refused(data: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        from_csv(data)
    return str(caught.value)


def test_fields_are_disjoint_so_a_row_holds_both() -> None:
    assert not set(SCENARIO_FIELDS) & set(PLAN_FIELDS)


def test_csv_is_rfc_4180_with_a_byte_order_mark() -> None:
    text = to_csv([PLAN, PLAN])
    assert text.encode().startswith(b"\xef\xbb\xbf")
    assert text.count("\r\n") == 3
    assert text.endswith("\r\n")
    assert "\n" not in text.replace("\r\n", "")
    header = text.removeprefix(BOM).split("\r\n")[0].split(",")
    assert tuple(header) == COLUMNS
    assert header[: len(SCENARIO_FIELDS)] == list(SCENARIO_FIELDS)
    assert header[-1] == "link"


def test_csv_cells() -> None:
    (row,) = cells(to_csv([plan(usd_per_hour=None, tpot_ms=math.nan)]))
    assert row["fits"] == "true"
    assert row["overlap"] == "off"
    assert row["sla_tpot_ms"] == "50"
    assert row["kv_bytes_per_token"] == "81920"
    assert row["output_tok_s"] == "1858.5858585858584"
    assert row["at_batch"] == row["usd_per_hour"] == row["tpot_ms"] == ""
    assert row["notes"] == "price: median of 11 prices, $1.99 to $6.88; borrowed: kernels of h100-sxm"


def test_csv_link_is_the_pinned_scenario() -> None:
    (row,) = cells(to_csv([PLAN], "https://host/"))
    assert row["link"].startswith("https://host/?")
    assert from_link(row["link"]) == pinned(PLAN.scenario)


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@a", "\ta", "\ra"])
def test_text_cells_cannot_run_as_formulas(start: str) -> None:
    (row,) = cells(to_csv([plan(reason=start, notes=(Note(start, "text", "tp"),))]))
    assert row["reason"] == f"'{start}"
    assert row["notes"] == f"'{start}: text"


def test_numbers_are_not_touched() -> None:
    (row,) = cells(to_csv([plan(withheld_bytes=-5.5)]))
    assert row["withheld_bytes"] == "-5.5"


def test_csv_reads_back() -> None:
    other = plan(
        scenario=Scenario(spec=3, accept=0.75, provider="Lambda", prefix=0.1, overlap=True), reason='a "b", c\nd'
    )
    assert from_csv(to_csv([PLAN, other])) == (PLAN.scenario, other.scenario)
    assert from_csv(to_csv([PLAN, other]).encode()) == (PLAN.scenario, other.scenario)
    assert from_csv(to_csv([])) == ()


def test_absent_columns_keep_their_defaults() -> None:
    assert from_csv("tp,weights,tpot_ms\n4,fp8,banana\n\n2,bf16,\n") == (Scenario(tp=4, weights="fp8"), Scenario(tp=2))


def test_csv_refusals_name_line_field_and_value() -> None:
    assert refused("tp,isl\n4,1024\nbanana,0\n").startswith("line 3, tp = banana: must be a whole number")
    assert "line 3, isl = 0" in refused("tp,isl\n4,1024\nbanana,0\n")


@pytest.mark.parametrize(
    "data",
    [
        "", "\n\n", BOM, "colour\nred\n", "tp,tp\n1,2\n", "tp\n1,2\n", "tp,isl\n1\n", "tp\n\n,\n", 'tp\n"1\n', "tp\n 4\n",
        "tp,isl\n,1\n", "model\nnothing\n", b"tp\n\xff\n", "tp\n" + "1\n" * MAX_UPLOAD, "tp\n1\x00\n", "preset\nllama70b-fp8-c\n",
        "accept\n0.9\n", "'tp\n4\n",
    ],
)  # fmt: skip
def test_csv_is_read_strictly(data: str | bytes) -> None:
    assert refused(data).isprintable()


def test_json_document() -> None:
    found = json.loads(to_json(plan(tpot_ms=math.nan, curve=(CurvePoint(1, math.inf, 1.0, 2.0, 3.0, None, True),))))
    assert tuple(found) == DOCUMENT_KEYS
    assert tuple(found["scenario"]) == SCENARIO_FIELDS
    assert found["scenario"]["overlap"] == "off"
    assert found["tpot_ms"] is None
    assert found["curve"][0]["tpot_ms"] is None
    assert found["fits"] is True
    assert found["batch"] == 92
    assert found["notes"][0] == {"code": "price", "text": "median of 11 prices, $1.99 to $6.88", "field": "price"}
    assert found["ledger"][0]["bound_by"] == "memory"
    assert from_link(found["link"]) == pinned(PLAN.scenario)


def test_json_reads_back() -> None:
    assert from_json(to_json(PLAN)) == PLAN.scenario
    assert from_json(to_json(PLAN).encode()) == PLAN.scenario
    assert from_json('{"scenario": {"tp": 2}}') == Scenario(tp=2)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "1", "{", '{"tp": 4}', '{"scenario": 1}', '{"scenario": {}, "colour": 1}', '{"scenario": {"colour": 1}}',
        '{"scenario": {"tp": "4"}}', '{"scenario": {"tp": 4.0}}', '{"scenario": {"tp": true}}', '{"scenario": {"tp": null}}',
        '{"scenario": {"tp": [4]}}', '{"scenario": {"overlap": true}}', '{"scenario": {"prefix": NaN}}',
        '{"scenario": {"prefix": 1e999}}', '{"scenario": {"tp": 1, "tp": 2}}', '{"scenario": {"model": "nothing"}}',
        '{"scenario": {"tp": ' + "9" * 5000 + "}}", '{"scenario": ' + "[" * 100_000, " " * (MAX_UPLOAD + 1), b"\xff",
        '{"scenario": {"v": true}}', '{"scenario": {"prefix": true}}', '{"scenario": {"accept": 0.9}}',
    ],
)  # fmt: skip
def test_json_is_read_strictly(text: str | bytes) -> None:
    with pytest.raises(InputError) as caught:
        from_json(text)
    assert str(caught.value).isprintable()


def test_a_file_without_plans_holds_none() -> None:
    assert from_csv("tp,isl\r\n") == ()
    assert from_csv("tp\n\n\n") == ()


def test_a_large_file_of_faults_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="70,000 rows"):
        from_csv("model\n" + "llama-3.1-70x\n" * 70_000)
    with pytest.raises(InputError, match="columns"):
        from_csv(",".join(f"a{n}" for n in range(50_000)) + "\n" + "," * 49_999 + "\n")
    with pytest.raises(InputError) as refused:
        from_csv("model\n" + "".join(f"llama-3.1-{n}x\n" for n in range(900)))
    assert len(refused.value.faults) == 50
