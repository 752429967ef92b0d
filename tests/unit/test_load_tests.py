"""How load tests behind measured rows were run: what sources say, against the words of their scripts."""

from __future__ import annotations

import pytest

from planner.case_words import CaseError, Row
from planner.catalog.load_tests import harness, launches
from planner.measured import TABLE
from planner.predict import read_table
from planner.simulate.load_test import load_test
from planner.simulate.measured import Seen, cases, simulated
from planner.simulate.patient import Patience
from planner.specs.scenario import Scenario

ROW: Row = {
    "source_id": "S01_inferencemax_2025-11", "engine": "vLLM", "engine_version": "0.11.0", "model": "gpt-oss-120b",
    "model_family": "gpt-oss-120b", "gpu": "H200", "weight_precision": "mxfp4", "kv_precision": "", "tp": "4",
    "isl": "921.6", "osl": "921.6", "concurrency": "8", "spec_decode": "off", "disagg": "no",
}  # fmt: skip
K1 = Scenario(model="gpt-oss-120b", gpu="h200-sxm", tp=4, isl=922, osl=922)


def row(**changes: str) -> Row:
    return {**ROW, **changes}


def test_inferencemax_sends_ten_requests_a_client_of_eight_to_ten_tenths_of_the_label() -> None:
    """benchmark_serving.py --num-prompts $((CONC * 10)) --random-range-ratio 0.8 of 1,024 tokens."""
    test = load_test(ROW, K1)
    assert (test.arrivals, test.clients, test.requests, test.budget, test.patience) == ("closed", 8, 80, None, None)
    table = test.table(922, 922)
    assert len(table) == 80
    for lengths in (table.isl, table.osl):
        assert 0.8 * 1024 - 1 <= lengths.min() < lengths.max() <= 1024 + 1
        assert abs(lengths.mean() - 922) < 20  # three times 205 / sqrt(12 · 80)
    assert (table.arrival == 0.0).all()


@pytest.mark.parametrize(
    ("changes", "scenario", "budget", "patience"),
    [
        ({"engine": "TensorRT-LLM"}, {}, 20_000, None),
        ({"engine": "TensorRT-LLM"}, {"dp": 2, "tp": 1, "ep": 2}, 20_000, Patience(50, 1639)),
        ({"engine": "TensorRT-LLM", "model_family": "DeepSeek-V3/R1"}, {}, 1024 + 8 + 96, None),
        ({"engine": "TensorRT-LLM", "model_family": "Llama-3.x-70B"}, {}, 2248, Patience(20, 2024)),
        ({"engine": "TensorRT-LLM", "model_family": "Llama-3.x-70B"}, {"tp": 8}, 2248, None),
        ({"engine": "TensorRT-LLM", "model_family": "Llama-3.x-70B"}, {"isl": 7373}, 8192 + 1024 + 200, None),
        ({"engine": "SGLang", "gpu": "B200"}, {}, 16_384, Patience(10)),
        ({"engine": "SGLang", "gpu": "B200", "concurrency": "16"}, {}, 16_384, Patience(30)),
        ({"engine": "SGLang"}, {}, None, None),
        ({"source_id": "S06_aic_internal_gap"}, {}, 922 + 1500 + 8, None),
        ({"source_id": "S06_aic_internal_gap", "engine": "SGLang"}, {}, 922 + 1500, None),
    ],
)
def test_what_the_engine_was_told(
    changes: dict[str, str], scenario: dict[str, int], budget: int | None, patience: Patience | None
) -> None:
    """Worked out by hand from the launch scripts; lengths of 8/9 to 10/9 of the mean, prompts of 1,024 at most."""
    asked = Scenario(**{**K1.model_dump(), **scenario})
    test = load_test(row(**changes), asked)
    assert (test.budget, test.patience) == (budget, patience)


def test_bursts_and_open_runs() -> None:
    burst = load_test(row(load_mode="static_batch"), K1)
    assert (burst.arrivals, burst.requests) == ("burst", 8)
    poisson = load_test(row(load_mode="open_loop_poisson", request_rate="4"), K1)
    gaps = poisson.table(922, 922).arrival
    assert poisson.open
    assert gaps[-1] / len(gaps) == pytest.approx(0.25, rel=0.1)
    even = load_test(row(load_mode="open_loop_constant_rate", request_rate="4"), K1).table(922, 922).arrival
    assert even[:3].tolist() == [0.25, 0.5, 0.75]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"load_mode": "open_loop_poisson"}, "request_rate is not stated"),
        ({"load_mode": "mlperf_server"}, "load mode mlperf_server is not simulated"),
        ({"concurrency": ""}, "concurrency is not stated"),
    ],
)
def test_loads_that_are_not_known_are_refused(changes: dict[str, str], said: str) -> None:
    with pytest.raises(CaseError, match=said):
        load_test(row(**changes), K1)


def test_every_entry_names_sources_that_are_told_from_each_other() -> None:
    _, rows = read_table(TABLE)
    sources = {each["source_id"] for each in rows}
    told = {name for name in sources if harness(name).sources}
    assert len(told) >= 10
    assert all(each.note and each.source and each.date for name in sources for each in launches(name))
    assert all(harness(name).note and harness(name).source and harness(name).date for name in told)


def test_a_row_that_is_simulated_and_those_that_are_not() -> None:
    found = simulated(
        [row(), row(model="unheard-of"), row(engine="llama.cpp"), row(tp="1", concurrency="4")], steady=True
    )
    first, unknown, hosted, last = found
    assert isinstance(first, Seen)
    assert (first.clients, first.requests) == (8, 80)
    assert first.steady_ms is not None
    assert first.ttft_ms is not None
    assert first.steady_ms < first.ttft_ms  # eight prompts at once are waited for, some at random are not
    assert isinstance(unknown, str)
    assert "llama.cpp: a host that sets the pace" in str(hosted)
    assert isinstance(last, Seen)
    assert last.out_tps_per_gpu is not None
    assert first.tpot_ms is not None


def test_rows_of_one_setting_share_step_times() -> None:
    groups, refused = cases([row(), row(concurrency="16"), row(tp="8"), row(isl="")])
    assert [[each.at for each in group] for group in groups] == [[0, 1], [2]]
    assert list(refused) == [3]
