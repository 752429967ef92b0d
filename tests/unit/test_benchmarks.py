"""Results of load tests: each format's own numbers, how concurrency and TPOT are taken, and what is refused or not kept."""

from __future__ import annotations

import csv
import json
from math import inf
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.logs.benchmark_words import NOTES, in_chinese
from planner.logs.benchmarks import FORMATS, MOST_CHARACTERS, looks_like_benchmark, read_benchmark, template_csv
from planner.logs.naming import model_name
from planner.logs.readings import Benchmark, Point

LOGS = Path(__file__).parents[1] / "golden" / "logs" / "benchmarks"


def log(name: str) -> str:
    return (LOGS / name).read_text(encoding="utf-8")


def read(name: str) -> Benchmark:
    return read_benchmark(log(name))


def said(found: Benchmark, name: str) -> list[str]:
    return [item.value for item in found.understood if item.name == name]


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_benchmark(text)
    assert len(caught.value.faults) == 1
    return str(caught.value)


def with_line(text: str, label: str, value: str) -> str:
    """A table with one line's value replaced."""
    return "\n".join(f"{label}: {value}" if line.startswith(label) else line for line in text.splitlines())


# --- the samples --------------------------------------------------------------------------------------


def samples() -> list[dict[str, str]]:
    return list(csv.DictReader(log("INDEX.csv").splitlines()))


def test_every_sample_has_its_source_and_every_tool_a_sample() -> None:
    assert all(row["tool"] and row["version"] and row["source"] and row["date"] for row in samples())
    assert {row["file"] for row in samples()} == {path.name for path in LOGS.iterdir()} - {"INDEX.csv"}
    assert all(looks_like_benchmark(log(row["file"])) for row in samples())
    assert {read(row["file"]).format for row in samples()} >= set(FORMATS)


FIRST_POINTS = {
    # Printed by the tools themselves; tokens a request = total / completed, by hand.
    "vllm_0.7_commented.txt": Point(
        concurrency=32, request_rate=inf, isl=2048, osl=2048, tpot_ms=70.14, itl_ms=70.14, ttft_ms=7279.56,
        tpot_median_ms=70.23, ttft_median_ms=7099.88, tpot_p99_ms=72.63, ttft_p99_ms=10999.46, output_tok_s=434.40, requests=32,
    ),
    "vllm_0.11_result.json": Point(
        concurrency=64, request_rate=inf, isl=1024, osl=256, tpot_ms=12.5, itl_ms=12.5, ttft_ms=160, tpot_median_ms=12.25,
        ttft_median_ms=144, tpot_p99_ms=15, ttft_p99_ms=480, output_tok_s=4096, requests=640, failed=0,
    ),
    "sglang_0.5.6_tables.txt": Point(
        concurrency=1, request_rate=inf, isl=610.1, osl=422, tpot_ms=9.22, itl_ms=9.02, ttft_ms=176.89, e2e_ms=3972.87,
        tpot_median_ms=9.32, ttft_median_ms=154.24, tpot_p99_ms=12.72, ttft_p99_ms=285.75, output_tok_s=106.10, requests=10,
    ),
    "sglang_0.4.6_results.jsonl": Point(
        concurrency=31.2, request_rate=inf, isl=1024, osl=512, tpot_ms=11, itl_ms=11, ttft_ms=200, e2e_ms=5821, tpot_median_ms=11,
        ttft_median_ms=190, tpot_p99_ms=12.1, ttft_p99_ms=600, output_tok_s=320 * 512 / 60, requests=320,
    ),
    "genai_perf_0.0.15.json": Point(
        concurrency=32, isl=2000, osl=500, tpot_ms=19.5, ttft_ms=250, e2e_ms=10000, tpot_median_ms=19.4, ttft_median_ms=240,
        tpot_p99_ms=22, ttft_p99_ms=700, output_tok_s=1600, requests=160,
    ),
    "aiperf_0.5.0.json": Point(
        concurrency=64, isl=2000, osl=500, tpot_ms=20.4, ttft_ms=310, e2e_ms=10500, tpot_median_ms=20.2, ttft_median_ms=300,
        tpot_p99_ms=24, ttft_p99_ms=900, output_tok_s=3000, requests=640, failed=3,
    ),
    "guidellm_0.2.1_tables.txt": Point(
        concurrency=1, isl=512.3, osl=256, tpot_ms=25.2, ttft_ms=53, e2e_ms=6480, tpot_median_ms=25.2, ttft_median_ms=51.5,
        tpot_p99_ms=25.2, ttft_p99_ms=61.8, output_tok_s=39.5, requests=30, failed=0,
    ),
    "guidellm_0.5_tables.txt": Point(
        concurrency=32, isl=546, osl=256, tpot_median_ms=74.3, ttft_median_ms=1465.9, output_tok_s=414.5,
    ),
    "guidellm_0.3_benchmarks.json": Point(
        concurrency=15.8, isl=512, osl=256, tpot_ms=12, ttft_ms=90, e2e_ms=3150, tpot_median_ms=11.88, ttft_median_ms=85.5,
        tpot_p99_ms=15.6, ttft_p99_ms=180, output_tok_s=1305.6, requests=100, failed=2,
    ),
    "guidellm_0.3.csv": Point(
        concurrency=15.8, isl=512, osl=256, tpot_ms=12, ttft_ms=90, e2e_ms=3150, tpot_median_ms=11.88, ttft_median_ms=85.5,
        tpot_p99_ms=15.6, ttft_p99_ms=180, output_tok_s=1305.6, requests=100, failed=2,
    ),
    "guidellm_0.6_benchmarks.json": Point(
        concurrency=31.9, isl=1024, osl=256, tpot_ms=15, ttft_ms=120, e2e_ms=3945, tpot_median_ms=14.85, ttft_median_ms=114,
        tpot_p99_ms=19.5, ttft_p99_ms=240, output_tok_s=2115.072, requests=200, failed=0,
    ),
    "guidellm_0.6.csv": Point(
        concurrency=31.9, isl=1024, osl=256, tpot_ms=15, ttft_ms=120, e2e_ms=3945, tpot_median_ms=14.85, ttft_median_ms=114,
        tpot_p99_ms=19.5, ttft_p99_ms=240, output_tok_s=2073.6, requests=200, failed=0,
    ),
    "headroom_template.csv": Point(
        concurrency=16, isl=1024, osl=256, tpot_ms=12.5, ttft_ms=90, output_tok_s=1240,
    ),
}  # fmt: skip


def close(found: Point, wanted: Point) -> bool:
    return all(
        value == pytest.approx(other, rel=1e-9) if other is not None else value is None
        for value, other in zip(vars(found).values(), vars(wanted).values(), strict=True)
    )


@pytest.mark.parametrize("name", FIRST_POINTS)
def test_first_point_holds_the_figures_of_the_text(name: str) -> None:
    assert close(read(name).points[0], FIRST_POINTS[name]), read(name).points[0]


def test_json_written_in_lines_one_below_the_other_is_one_benchmark() -> None:
    found = read("vllm_0.11_appended.jsonl")
    # The first is written as 512 tok/s of 256: 2 a second for 5.65 s each, 11.3 of its 16 seats, so the limit is not taken.
    assert [point.concurrency for point in found.points] == pytest.approx([11.3067, 64, 128], rel=1e-4)
    assert said(found, "points") == ["3"]


def test_a_list_of_results_is_read_like_lines() -> None:
    lines = [json.loads(line) for line in log("vllm_0.11_appended.jsonl").splitlines()]
    assert read_benchmark(json.dumps(lines, indent=1)).points == read("vllm_0.11_appended.jsonl").points


def test_results_written_as_columns_are_read_like_json() -> None:
    lines = [json.loads(line) for line in log("vllm_0.11_appended.jsonl").splitlines()]
    cells = [["" if value is None else str(value) for value in line.values()] for line in lines]
    text = "\n".join(",".join(row) for row in [[*lines[0]], *cells])
    found = read_benchmark(text)
    assert found.points == read("vllm_0.11_appended.jsonl").points
    assert (found.format, found.model) == ("vllm bench serve", "meta-llama/Llama-3.1-8B-Instruct")


def test_a_table_from_a_log_with_times_before_each_line() -> None:
    text = "\n".join(f"2026-01-01T00:00:00Z {line}" for line in log("vllm_2026-08_e2el.txt").splitlines())
    assert read_benchmark(text).points == read("vllm_2026-08_e2el.txt").points


def test_speculative_decoding_is_named() -> None:
    result = json.loads(log("vllm_0.11_result.json")) | {"spec_decode_acceptance_length": 2.4}
    assert said(read_benchmark(json.dumps(result)), "speculative decoding") == ["was on; TPOT holds its gain"]


def test_tables_pasted_together_are_points_in_order() -> None:
    assert [point.concurrency for point in read("sglang_0.5.6_tables.txt").points] == [1, 14.09, 92.7]
    assert [point.tpot_ms for point in read("sglang_0.5.6_tables.txt").points] == [9.22, 53.25, 364.70]


def test_rows_of_published_tables_are_points() -> None:
    found = read("nvidia_nim_1.8.0.csv")
    assert [(p.concurrency, p.ttft_ms, p.tpot_ms, p.output_tok_s) for p in found.points[1:3]] == [
        (5, 546.7, 21.83, 218.48),
        (25, 688.69, 38.75, 623.4),
    ]


# --- requests in flight -------------------------------------------------------------------------------


def test_a_request_rate_alone_gives_concurrency_by_littles_law() -> None:
    """61.24 tok/s at 51076 / 250 tokens a request = 0.29975 1/s; × 4.71634 s = 1.4137 in flight."""
    found = read("vllm_2026-08_e2el.txt")
    assert found.points[0].concurrency == pytest.approx(1.4137, rel=1e-4)
    assert "requests a second × mean time of a request (Little's law)" in said(found, "concurrency")


def test_without_a_mean_time_of_requests_it_is_ttft_and_tpot() -> None:
    """2200.83 / 126.96 = 17.3348 1/s; 2414.68 + 128.92 × 125.96 = 18653.4 ms; the product is 323.35."""
    found = read("vllm_0.12_tables.txt")
    assert found.points[0].concurrency == pytest.approx(323.35, rel=1e-4)
    assert said(found, "time of a request") == ["TTFT + TPOT × (output tokens − 1), as it is not stated"]


def test_genai_perf_printed_at_concurrency_one_gives_one() -> None:
    """The README's run: 520.87 / 261.90 = 1.9888 1/s × 0.4992 s = 0.9928."""
    assert read("genai_perf_0.0.8_table.txt").points[0].concurrency == pytest.approx(0.9928, rel=1e-4)


def test_a_mean_that_the_tool_states_is_taken_under_a_request_rate() -> None:
    assert read("sglang_0.5.10_rate.txt").points[0].concurrency == 36.08
    assert [point.concurrency for point in read("guidellm_0.2.1_tables.txt").points] == [1, 29.63, 3.26, 14.69]


def test_a_limit_bounds_what_a_request_rate_gives() -> None:
    result = json.loads(log("vllm_0.11_result.json"))
    rate = result | {"request_rate": 16.0, "mean_e2el_ms": 3000.0}
    assert read_benchmark(json.dumps(rate)).points[0].concurrency == pytest.approx(48)
    assert read_benchmark(json.dumps(rate | {"max_concurrency": 20})).points[0].concurrency == 20


def test_fewer_requests_than_the_limit_are_all_in_flight() -> None:
    result = json.loads(log("vllm_0.11_result.json")) | {"max_concurrency": 1000, "output_throughput": None}
    del result["duration"], result["request_throughput"]
    found = read_benchmark(json.dumps(result))
    assert found.points[0].concurrency == 640
    assert said(found, "concurrency")[-1] == "fewer requests than the limit, so their number is taken"


def test_concurrency_that_cannot_be_worked_out_stays_open() -> None:
    found = read_benchmark("concurrency,tpot_ms\n,20\n")
    assert found.points == (Point(tpot_ms=20.0),)
    assert "not stated and not to be worked out; state it to use the points" in said(found, "concurrency")


def saved(**changes: object) -> str:
    """A saved result of vLLM: 16 seats, 160 requests of 1,024 tokens in and 256 out."""
    plain = {
        "backend": "vllm", "max_concurrency": 16, "request_rate": "inf", "duration": 100.0, "completed": 160,
        "output_throughput": 1240.0, "total_input_tokens": 163_840, "total_output_tokens": 40_960, "mean_ttft_ms": 90.0,
        "mean_tpot_ms": 12.5,
    }  # fmt: skip
    return json.dumps({key: value for key, value in {**plain, **changes}.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "flight", "note"),
    [
        # The file's own mean, whatever the limit is.
        ({"concurrency": 13.2}, 13.2, "mean over the run, as stated"),
        # 1,240 / 256 = 4.84 1/s for 90 + 255 · 12.5 = 3,277.5 ms each: 15.9 of 16.
        ({}, 16, "as the load generator holds it"),
        # 409.6 / 256 = 1.6 1/s for 3.2775 s each.
        (
            {"output_throughput": 409.6}, 1.6 * 3.2775,
            "fewer than the limit: requests a second × mean time of a request (Little's law)",
        ),
        # 4 1/s for 3.2 s each are 12.8, 0.8 of the limit; a stated time of a request counts before a derived one.
        ({"output_throughput": 1024.0, "mean_e2el_ms": 3200.0}, 16, "as the load generator holds it"),
        # Nothing to work it out from.
        ({"output_throughput": 1240.0, "mean_ttft_ms": None}, 16, "as the load generator holds it"),
        (
            {"mean_ttft_ms": None, "request_rate": 4.0}, 16,
            "the limit; requests arrive at a rate, so it need not be reached",
        ),
    ],
)  # fmt: skip
def test_a_limit_is_taken_only_where_nothing_says_that_fewer_were_in_flight(
    changes: dict[str, object], flight: float, note: str
) -> None:
    found = read_benchmark(saved(**changes))
    assert found.points[0].concurrency == pytest.approx(flight)
    assert note in said(found, "concurrency")


@pytest.mark.parametrize(
    "text",
    [
        saved(mean_tpot_ms=None, median_tpot_ms=12.4),
        "concurrency,isl,osl,tpot_median_ms,ttft_ms\n16,1024,256,12.4,90\n",
        json.dumps({
            "benchmarks": [{"args": {"strategy": {"type_": "concurrent", "streams": 16}}, "metrics": {
                "inter_token_latency_ms": {"successful": {"median": 12.4}},
                "time_to_first_token_ms": {"successful": {"mean": 80}},
            }}],
        }),
    ],
    ids=["vLLM", "template", "GuideLLM"],
)  # fmt: skip
def test_a_median_that_stands_in_is_called_one(text: str) -> None:
    found = read_benchmark(text)
    assert (found.points[0].tpot_ms, found.points[0].tpot_median_ms) == (None, 12.4)
    assert "the median stands in, as no mean is stated" in said(found, "TPOT")
    assert "mean, first token excluded" not in said(found, "TPOT")
    assert said(found, "TTFT") == said(found, "times") == []


def test_a_median_of_ttft_alone_is_called_one() -> None:
    found = read_benchmark(saved(mean_ttft_ms=None, median_ttft_ms=88.0))
    assert said(found, "TTFT") == ["the median stands in, as no mean is stated"]
    assert said(found, "TPOT") == ["mean, first token excluded"]


def test_a_gap_between_tokens_that_stands_in_is_not_called_a_mean_tpot() -> None:
    found = read_benchmark("concurrency,itl_ms,ttft_ms\n16,12.5,90\n")
    assert said(found, "TPOT") == ["not stated; the mean gap between tokens (ITL) stands in"]


# --- time per output token ----------------------------------------------------------------------------


def test_llmperfs_own_latency_counts_the_first_token_and_is_not_used() -> None:
    """(1.1840654935 − 0.2538222914) s / (99.44 − 1) = 9.4499 ms; its own 11.93 ms is the time over all tokens."""
    found = read("llmperf_2023-08-31_summary.json")
    assert found.points[0].tpot_ms == pytest.approx(9.4499, rel=1e-4)
    # 335.40 / 99.44 requests a second for 1.18407 s each: 3.99 of the 5 that LLMPerf may have in flight.
    assert found.points[0].concurrency == pytest.approx(3.9937, rel=1e-4)
    assert found.ignored == ("LLMPerf's inter-token latency includes the first token and is not used.",)


def test_summaries_of_llmperf_as_one_table() -> None:
    """(1.55 − 0.05) / 150 = 10 ms and (2.45 − 0.20) / 150 = 15 ms."""
    found = read("llmperf_summaries.csv")
    assert [point.tpot_ms for point in found.points] == pytest.approx([10, 15])
    assert [point.failed for point in found.points] == [0, 2]


def test_guidellms_tpot_divides_by_all_tokens_and_is_not_used() -> None:
    """Printed: ITL 32.8, TPOT 32.7, because 255 gaps are spread over 256 tokens."""
    found = read("guidellm_0.2.1_tables.txt")
    assert found.points[-1].tpot_ms == 32.8
    assert found.ignored[0].startswith("GuideLLM's TPOT divides by all output tokens")


def test_inter_token_latency_stands_in_where_no_tpot_is_stated() -> None:
    """Tables of sglang before 0.4.4 print none."""
    lines = [line for line in log("sglang_0.5.10_rate.txt").splitlines() if "TPOT" not in line]
    found = read_benchmark("\n".join(lines))
    assert found.points[0].tpot_ms == 47.97
    assert said(found, "TPOT") == ["not stated; the mean gap between tokens (ITL) stands in"]


def test_medians_are_named_as_such() -> None:
    found = read("guidellm_0.5_tables.txt")
    assert found.points[1].tpot_ms is None
    assert found.points[1].tpot_median_ms == 102.6
    assert said(found, "times") == ["medians, as no mean is printed"]


@pytest.mark.parametrize(("unit", "wanted"), [("ms", 0.02), ("s", 20.0), ("us", 2e-5), ("ns", 2e-8)])
def test_the_unit_beside_a_metric_decides_and_not_its_size(unit: str, wanted: float) -> None:
    export = json.loads(log("aiperf_0.5.0.json")) | {"inter_token_latency": {"unit": unit, "avg": 0.02}}
    assert read_benchmark(json.dumps(export)).points[0].tpot_ms == pytest.approx(wanted)


def test_an_unknown_unit_is_refused() -> None:
    export = json.loads(log("aiperf_0.5.0.json")) | {"inter_token_latency": {"unit": "min", "avg": 0.02}}
    assert "times are read in ms, s, us or ns" in refused(json.dumps(export))


def test_old_guidellm_heads_seconds_as_ms() -> None:
    """30 requests in 194.4 s one after the other: 6.48 s each."""
    found = read("guidellm_0.2.1_tables.txt")
    assert found.points[0].e2e_ms == pytest.approx(194.4 / 30 * 1000)
    assert said(found, "time of a request") == ["this version heads the column ms and prints seconds"]


def test_zero_is_what_tools_print_when_they_did_not_measure() -> None:
    text = with_line(log("vllm_2026-08_e2el.txt"), "Mean TTFT (ms)", "0.00")
    assert read_benchmark(text).points[0].ttft_ms is None


def test_figures_that_cannot_be_of_one_service_are_named() -> None:
    """2480 tok/s × 24.5 ms = 60.8 requests generating; of 64 in flight that is well, of 16 it is not."""
    warning = (
        "tokens a second × TPOT imply more requests in flight than are stated; check that both are of the whole service"
    )
    head = "concurrency,tpot_ms,output_tok_s\n"
    assert said(read_benchmark(head + "64,24.5,2480\n"), "figures") == []
    assert said(read_benchmark(head + "16,24.5,2480\n"), "figures") == [warning]


@pytest.mark.parametrize("row", samples(), ids=lambda row: row["file"])
def test_no_real_result_contradicts_itself(row: dict[str, str]) -> None:
    assert said(read(row["file"]), "figures") == []


# --- failed requests ----------------------------------------------------------------------------------


def test_failed_requests_are_reported() -> None:
    found = read("vllm_0.9_detailed.json")  # 204 were to be sent, 200 completed
    assert found.points[0].failed == 4
    assert said(found, "failed requests") == ["4", "they are left out of every mean"]


def test_a_run_in_which_all_requests_failed_is_refused() -> None:
    text = with_line(log("vllm_2026-08_e2el.txt"), "Successful requests", "0")
    assert refused(text) == ("line 1 = no request completed: a run in which every request failed holds no times")


@pytest.mark.parametrize(("done", "kept"), [(1, False), (499, False), (500, True), (1000, True)])
def test_a_run_of_which_less_than_half_completed_is_refused(done: int, kept: bool) -> None:
    text = saved(completed=done, num_prompts=1000)
    if kept:
        assert read_benchmark(text).points[0].failed == 1000 - done
    else:
        assert refused(text) == f"line 1 = {done} of 1,000 requests completed: at least half must have, to be compared"


def test_drafts_are_kept_apart_from_a_result_without() -> None:
    assert not read_benchmark(saved()).drafted
    assert not read_benchmark(saved(accept_length=0)).drafted
    assert read_benchmark(saved(accept_length=2.9)).drafted
    assert read_benchmark("concurrency,tpot_ms,spec,accept\n16,6,3,0.7\n").drafted
    table = with_line(log("vllm_2026-08_e2el.txt"), "Mean TPOT (ms)", "6.0\nAcceptance length:   2.9")
    assert read_benchmark(table).drafted
    assert "all runs must be of one deployment" in refused(saved() + saved(accept_length=2.9))


# --- the deployment -----------------------------------------------------------------------------------


def test_what_a_tool_states_of_the_deployment() -> None:
    assert read("vllm_0.11_result.json").stated == (("tp", 2),)
    found = read("sglang_0.5.9_server_info.jsonl")
    assert found.stated == (("engine", "sglang"), ("tp", 4), ("pp", 1), ("dp", 1), ("ep", 1))
    assert found.model == "Qwen3-32B"
    assert dict(read("headroom_template.csv").stated)["weights"] == "fp8"


def test_runs_of_two_models_or_layouts_are_refused() -> None:
    result = json.loads(log("vllm_0.11_result.json"))
    other = result | {"model_id": "Qwen/Qwen3-8B"}
    assert "all runs must be of one deployment" in refused(json.dumps(result) + "\n" + json.dumps(other))
    assert "tp 2 and 4" in refused(json.dumps(result) + json.dumps(result | {"tensor_parallel_size": 4}))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("qwen3:0.6b", ""),
        ("/srv/eve/models/Qwen3-8B", "Qwen3-8B"),
        ("/cache/models--Qwen--Qwen3-8B/snapshots/0123456789abcdef0123456789abcdef01234567", "Qwen/Qwen3-8B"),
        ("C:\\models\\Qwen3-8B", "Qwen3-8B"),
        ("http://host:8000/v1", ""),
        ("10.1.2.3:8000/m", ""),
        ("eve@example.org", ""),
        ("/srv/eve/models/eves-secret", ""),
        ("/srv/carol.smith", ""),
        ("gpu-node-7.corp.acme.com/llama", ""),
        ("gpu7.local", ""),
        ("gpu7.acme.de/llama", ""),
        ("AKIAIOSFODNN7EXAMPLE", ""),
        ("github_pat_11ABCDEFG0abc", ""),
        ("glpat-xxxxxxxxxxxx", ""),
        ("gsk_abcd1234", ""),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.abc", ""),
        ("eve/hf_abcdefgh", ""),
        ("eve/ghp_0123456789", ""),
        ("a" * 97, ""),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("sk-abcdef", ""),
        ("llama-hf_0123456789abcdefABCD0123", ""),
        ("<b>model</b>", ""),
        ("=1+1", ""),
        ("模型", ""),
        ("", ""),
    ],
)
def test_a_models_name_is_kept_and_places_keys_and_markup_are_not(text: str, kept: str) -> None:
    assert model_name(text) == kept


@pytest.mark.parametrize("row", samples(), ids=lambda row: row["file"])
def test_hosts_paths_keys_and_prompts_are_not_kept(row: dict[str, str]) -> None:
    shown = repr(read(row["file"]))
    for secret in ("srv/", "10.20.30.40", "10.1.2.3", "10.9.8.7", "127.0.0.1", "secret", "/data", "alice", "bob", "carol",
                   "dave", "http", "gpu-7", "prompt text"):  # fmt: skip
        assert secret not in shown


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", samples(), ids=lambda row: row["file"])
def test_a_text_without_its_last_part_is_refused_or_has_fewer_points(row: dict[str, str]) -> None:
    text = log(row["file"])
    whole = read_benchmark(text)
    cut = text[: len(text) * 6 // 10]
    try:
        found = read_benchmark(cut)
    except InputError:
        return
    assert len(found.points) < len(whole.points)
    assert found.points[:-1] == whole.points[: len(found.points) - 1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "results = empty: paste the result of a load test"),
        ("  \n", "results = empty: paste the result of a load test"),
        ("x" * (MOST_CHARACTERS + 1), "results = 4,194,305 characters: at most 4,194,304; save it without single requests"),
        ('{"a": 1}', f"line 1 = JSON of another kind: results of {', '.join(FORMATS[:-1])} are read"),
        ('{"output_throughput": 1, "comp', "line 1 = JSON that is cut off: its end is missing; paste the whole file"),
        ('{"output_throughput" 1, "completed": 2}', "line 1 = JSON with a fault: it cannot be read from here on"),
        ("{" + '"a":{' * 30 + "}" * 31, "results = JSON nested too deep: at most 24 levels are read"),
        ("concurrency,tpot_ms\n", "results = a header without rows: one row a point is expected below it"),
        ("concurrency,tpot_ms\n8,20\n8", "line 3 = number of cells 1: the header names 2 columns"),
        ("concurrency,tpot_ms\n8,fast\n", "line 2 = tpot_ms: a number is expected here"),
        ("concurrency,tpot_ms\n8,-1\n", "line 2 = tpot_ms -1: must be from 0 to 100,000,000 in milliseconds"),
        ("concurrency,tpot_ms\n8,1e400\n", "line 2 = tpot_ms 1e400: must be from 0 to 100,000,000 in milliseconds"),
        ("concurrency,tpot_ms\n8,nan\n", "line 2 = tpot_ms nan: must be from 0 to 100,000,000 in milliseconds"),
        ("concurrency,isl\n", f"results = text of another kind: results of {', '.join(FORMATS)} are read"),
        ("concurrency,tpot_ms,tp\n8,20,0\n", "line 2 = tp 0: must be a whole number from 1 to 1,024"),
        ('concurrency,tpot_ms\n8,"20\n', "line 2 = CSV with a fault: it is cut off or its quotes do not match"),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence(text: str, sentence: str) -> None:
    assert refused(text) == sentence


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("concurrency,isl,osl,tpot_ms\n16,0,256,12.5\n", "isl 0"),
        ("concurrency,isl,osl,tpot_ms\n16,1024,0.0,12.5\n", "osl 0.0"),
        ("concurrency,isl,osl,tpot_ms,output_tok_s\n0,1024,256,12.5,1240\n", "concurrency 0"),
    ],
)
def test_zero_in_a_row_that_a_person_wrote_is_refused_by_name(text: str, name: str) -> None:
    assert refused(text) == f"line 2 = {name}: must be above 0; leave it empty if it is not known"


@pytest.mark.parametrize(
    "text",
    [
        "concurrency,isl,osl,tpot_ms,tpot_ms\n16,1024,256,12.5,20\n",
        "Concurrency,TTFT (ms),ITL (ms),itl (ms)\n1,90,12.5,20\n",
    ],
)
def test_a_column_that_stands_twice_is_refused(text: str) -> None:
    assert "one name over columns" in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "concurrency,tpot_ms\n16,hunter2\n",
        "concurrency,tpot_ms,gpu\n16,12.5,hunter2\n",
        "concurrency,tpot_ms,tp\n16,12.5,hunter2\n",
        "concurrency,tpot_ms,weights\n16,12.5,hunter2\n",
        "concurrency,tpot_ms,model\n16,12.5,/srv/hunter2/models/x\n",
        "concurrency,tpot_ms,hunter2\n16,12.5,1\n",
        saved(output_throughput="hunter2"),
        saved(completed="hunter2"),
        json.dumps(
            {"inter_token_latency": {"unit": "hunter2", "avg": 12.5}, "request_latency": {"unit": "ms", "avg": 1}}
        ),
    ],
)
def test_a_refusal_repeats_no_text_of_a_cell(text: str) -> None:
    assert "hunter2" not in refused(text)


def test_two_hundred_points_are_read_and_no_more() -> None:
    rows = [f"{number},20" for number in range(1, 202)]
    assert len(read_benchmark("\n".join(["concurrency,tpot_ms", *rows[:200]])).points) == 200
    assert refused("\n".join(["concurrency,tpot_ms", *rows])) == "results = 201 rows: at most 200 are read"


def test_one_request_is_singular() -> None:
    assert said(read_benchmark("concurrency,tpot_ms\n1,12.5\n"), "concurrency")[0] == "1 request"


def test_two_tools_in_one_text_are_refused() -> None:
    both = log("vllm_2026-08_e2el.txt") + log("sglang_0.5.10_rate.txt")
    assert refused(both) == (
        "results = results of vllm bench serve and of sglang.bench_serving in one text: read one at a time"
    )
    assert "GuideLLM and of AIPerf" in refused(log("guidellm_0.5_tables.txt") + log("aiperf_0.1.1_table.txt"))
    assert "read one at a time" in refused(log("vllm_0.11_result.json") + "\n" + log("aiperf_0.5.0.json"))


def test_a_table_without_its_end_is_refused() -> None:
    text = log("vllm_2026-08_e2el.txt").rstrip().removesuffix("=" * 50)
    assert refused(text) == "line 1 = a table without its last line of =: it is cut off; paste it whole"


@pytest.mark.parametrize(
    "text",
    [
        "INFO 11-04 Available KV cache memory: 60.1 GiB",
        "你好，世界",
        '{"model_type": "llama", "hidden_size": 4096}',
        "a,b\n1,2",
    ],
)
def test_other_texts_do_not_look_like_benchmarks(text: str) -> None:
    assert not looks_like_benchmark(text)


# --- our own template ---------------------------------------------------------------------------------


def test_the_template_reads_back_as_its_example() -> None:
    found = read_benchmark(template_csv())
    assert found.format == "Headroom CSV"
    assert found.points == (Point(64.0, isl=1024.0, osl=256.0, tpot_ms=24.5, ttft_ms=180.0, output_tok_s=2480.0),)
    assert dict(found.stated) == {
        "model": "llama-3.1-70b", "gpu": "h100-sxm", "engine": "vllm", "weights": "fp8", "kv": "bf16",
        "tp": 4, "pp": 1, "dp": 1, "ep": 1,
    }  # fmt: skip


def test_the_template_takes_every_field_of_a_point() -> None:
    point = Point(8.0, 2.0, 100.0, 50.0, 20.0, 21.0, 90.0, 1100.0, 19.0, 80.0, 30.0, 200.0, 300.0, 40, 2)
    cells = {name: str(value) for name, value in vars(point).items()}
    found = read_benchmark(",".join(cells) + "\n" + ",".join(cells.values()) + "\n")
    assert found.points == (point,)


def test_an_unknown_column_is_counted_and_not_repeated() -> None:
    said_of_it = refused("concurrency,hunter2,tpot_ms\n1,2,3\n")
    assert "column 2" in said_of_it
    assert "hunter2" not in said_of_it


def test_what_is_said_exists_in_chinese() -> None:
    assert all(in_chinese(note.en) == note.zh != note.en for note in NOTES.values())
    found = [read(row["file"]) for row in samples()]
    assert all(in_chinese(sentence) != sentence for item in found for sentence in item.ignored)
