"""Predictions for tables of cases: every row back in order, from its inputs alone, or the reason why not."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.accelerators import accelerator
from planner.catalog.engines import engine
from planner.errors import InputError
from planner.predict import PRED_COLUMNS, predict_file, predict_rows, read_table
from tests.asking import plan

SERVING = {
    "model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "H100-SXM", "engine": "vLLM", "engine_version": "0.11.0",
    "weight_precision": "fp8", "kv_precision": "bf16", "tp": "4", "pp": "1", "ep": "1", "dp": "1", "disagg": "no",
    "isl": "1000", "osl": "200", "concurrency": "16", "n_gpus": "4", "load_mode": "closed_loop_concurrency",
}  # fmt: skip
MEMORY = {
    "model": "meta-llama/Llama-3.1-70B-Instruct", "engine": "vllm", "engine_version": "0.11.0", "gpu": "H100",
    "tp": "4", "pp": "1", "mem_util": "0.9", "weight_quant": "bf16", "kv_dtype": "auto", "max_model_len": "8192",
}  # fmt: skip


def cells(case: dict[str, str], **changes: str) -> dict[str, str]:
    """Prediction cells of one row."""
    row = {**case, **changes}
    (found,) = predict_rows(list(row), [row])
    return found


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    """A CSV of rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def number(found: dict[str, str], name: str) -> float:
    assert found["pred_error"] == ""
    return float(found[f"pred_{name}"])


def test_every_row_has_every_column() -> None:
    assert set(cells(SERVING)) == set(cells(MEMORY)) == set(cells(MEMORY, model="nobody/knows")) == set(PRED_COLUMNS)


def test_a_serving_row_is_a_plan_at_its_concurrency() -> None:
    found = cells(SERVING)
    at = plan(model="llama-3.1-70b", weights="fp8", tp=4, isl=1000, osl=200, at_batch=16)
    assert number(found, "tpot_ms") == pytest.approx(at.tpot_ms, rel=0.15)
    assert number(found, "weights_gib_per_gpu") == pytest.approx(at.weights_bytes / 2**30, rel=1e-4)
    assert found["pred_fits"] == "true"


def test_a_memory_row_by_hand() -> None:
    """80 · 2 · 2 heads · 128 · 2 bytes on one of four GPUs; 141.1 GB of weights over four."""
    found = cells(MEMORY)
    assert number(found, "kv_bytes_per_token_per_gpu") == 81_920
    assert number(found, "weights_gib_per_gpu") == pytest.approx(70.554e9 * 2 / 4 / 2**30, rel=1e-3)
    tokens = number(found, "kv_tokens")
    assert tokens == pytest.approx(number(found, "kv_gib_per_gpu") * 2**30 / 81_920, abs=16)
    assert tokens % 16 == 0
    assert number(found, "max_concurrency") == pytest.approx(tokens / 8192, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "changes", "expected"),
    [
        ("deepseek-ai/DeepSeek-R1", {"tp": "8", "weight_quant": "fp8"}, 70_272),
        ("Qwen/Qwen3-235B-A22B", {"tp": "8"}, 48_128),
        ("Qwen/Qwen3-235B-A22B", {"tp": "4"}, 48_128),
        ("meta-llama/Llama-3.1-70B-Instruct", {"kv_dtype": "fp8"}, 40_960),
        ("deepseek-ai/DeepSeek-R1", {"tp": "8", "weight_quant": "fp8", "dcp": "8"}, 8_784),
    ],
)
def test_cache_rates_of_memory_rows(model: str, changes: dict[str, str], expected: int) -> None:
    assert number(cells(MEMORY, model=model, **changes), "kv_bytes_per_token_per_gpu") == expected


def test_measured_columns_are_never_read() -> None:
    told = {
        "tpot_mean_ms": "1.0",
        "tpot_median_ms": "1.0",
        "ttft_median_ms": "1.0",
        "out_tps_per_gpu": "1",
        "pred_tpot_ms": "1",
    }
    assert cells(SERVING, **told) == cells(SERVING)
    told = {"weights_gib_per_gpu": "1", "kv_cache_gib_per_gpu": "1", "kv_cache_tokens": "1", "max_concurrency": "1"}
    assert cells(MEMORY, **told) == cells(MEMORY)


@pytest.mark.parametrize(
    ("case", "changes", "word"),
    [
        (SERVING, {"model": "nobody/knows"}, "nobody/knows"),
        (SERVING, {"gpu": "TPU v9"}, "TPU v9"),
        (SERVING, {"engine": "MLC-LLM"}, "MLC-LLM"),
        (SERVING, {"tp": "x"}, "tp"),
        (SERVING, {"isl": ""}, "isl"),
        (SERVING, {"weight_precision": "gguf"}, "gguf"),
        (MEMORY, {"engine": "llama.cpp"}, "llama.cpp"),
        (MEMORY, {"tp": ""}, "tp"),
        (MEMORY, {"kv_dtype": "q4_0"}, "q4_0"),
    ],
)
def test_what_is_not_predicted_says_why(case: dict[str, str], changes: dict[str, str], word: str) -> None:
    found = cells(case, **changes)
    assert word in found["pred_error"]
    assert all(value == "" for name, value in found.items() if name != "pred_error")


def test_nothing_is_invented_for_a_row_without_a_share() -> None:
    found = cells(MEMORY, mem_util="")
    assert "not stated" in found["pred_error"]
    assert found["pred_kv_gib_per_gpu"] == ""
    assert float(found["pred_weights_gib_per_gpu"]) > 0


def test_defaults_are_said() -> None:
    assert "bf16 cache by default" in cells(MEMORY)["pred_source"]


def test_rows_come_back_in_order_with_what_they_had(tmp_path: Path) -> None:
    rows = [{**SERVING, "row": str(i), "concurrency": str(c)} for i, c in enumerate((64, 1, 8))]
    out = tmp_path / "out.csv"
    predict_file(str(write(tmp_path / "in.csv", rows)), str(out))
    header, back = read_table(out)
    assert header == [*rows[0], *PRED_COLUMNS]
    assert [{name: row[name] for name in rows[0]} for row in back] == rows
    tpot = [float(row["pred_tpot_ms"]) for row in back]
    assert tpot[0] > tpot[2] > tpot[1]


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"", b"model,tp\n\xff\xfe,1\n"])
def test_other_tables_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_bytes(content)
    with pytest.raises(InputError):
        predict_file(str(path), str(tmp_path / "out.csv"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_table(tmp_path / "none.csv")


def test_more_concurrency_is_slower() -> None:
    times = [number(cells(SERVING, concurrency=str(c)), "tpot_ms") for c in (1, 4, 16, 64)]
    assert times == sorted(times)


def test_a_batch_that_does_not_fit_says_so() -> None:
    changes: dict[str, Any] = {"tp": "1", "n_gpus": "1", "weight_precision": "bf16"}
    found = cells(SERVING, **changes)
    assert found["pred_fits"] == "false" or found["pred_error"]


STATED = {
    "model": "Llama-3.1-8B",
    "gpu": "H100",
    "engine": "vllm",
    "tp": "1",
    "mem_util": "0.9",
    "max_model_len": "8192",
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_model_len": "0"}, "max_model_len = 0: must be above 0"),
        ({"max_model_len": "-5"}, "must be above 0"),
        ({"block_size": "0.4"}, "block_size = 0.4: must be a whole number"),
        ({"gpu_mem_gib_printed": "1e308"}, "gpu_mem_gib_printed = 1e+308"),
        ({"mem_util": "1e308"}, "mem_util = 1e+308: must be above 0 and at most 1"),
        ({"tp": "3"}, "tp does not divide the 32 attention heads"),
        ({"pp": "100000"}, "pp exceeds the 32 layers"),
    ],
)
def test_a_memory_case_that_cannot_be_meant_is_one_sentence(change: dict[str, str], words: str) -> None:
    row = {**STATED, **change}
    (cells,) = predict_rows(list(row), [row])
    assert words in cells["pred_error"]
    assert cells["pred_kv_gib_per_gpu"] == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"isl": "-5"}, "isl = -5: must be above 0"),
        ({"isl": "0"}, "isl = 0: must be above 0"),
        ({"concurrency": "-8"}, "must be above 0"),
        ({"concurrency": "1e300"}, "at most 1e+12"),
        ({"spec_decode": "mtp2"}, "acceptance are not stated"),
        ({"disagg": "yes"}, "the columns state one layout"),
    ],
)
def test_a_serving_case_is_not_invented(change: dict[str, str], words: str) -> None:
    row = {"model": "Llama-3.1-8B", "gpu": "H100-SXM", "engine": "vllm", "tp": "1", "isl": "100", "osl": "100",
           "concurrency": "8", "weight_precision": "bf16", **change}  # fmt: skip
    (cells,) = predict_rows(list(row), [row])
    assert words in cells["pred_error"]


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "cases.csv"
    table.write_text("model,model,gpu,engine,isl,osl\n", encoding="utf-8")
    with pytest.raises(InputError, match="model stands twice"):
        read_table(table)


def test_float32_weights_double_everything() -> None:
    """vLLM 0.19 printed 29.98 GiB and 262,144 B a token for Llama-3.1-8B in float32."""
    found = cells(MEMORY, model="meta-llama/Llama-3.1-8B-Instruct", tp="1", weight_quant="fp32")
    assert number(found, "weights_gib_per_gpu") == pytest.approx(29.98, rel=0.005)
    assert number(found, "kv_bytes_per_token_per_gpu") == 262_144


def test_decode_context_parallelism_holds_more_sequences() -> None:
    """The printed concurrency grows with dcp: 1.68, 3.35, 6.71 at 1, 2, 4 for GLM-5.1 on eight cards."""
    case = {**MEMORY, "model": "zai-org/GLM-5.1", "tp": "8", "gpu": "H200", "weight_quant": "fp8", "kv_dtype": "fp8"}
    one, two, four = (number(cells(case, dcp=dcp), "max_concurrency") for dcp in ("1", "2", "4"))
    assert two / one == pytest.approx(2.0, rel=0.01)
    assert four / one == pytest.approx(4.0, rel=0.02)


def test_a_share_that_is_not_free_does_not_fit() -> None:
    """H100: 0.51 GiB are gone at start; 0.995 of 79.1 GiB asks for all but 0.40."""
    case = {**MEMORY, "model": "meta-llama/Llama-3.1-8B-Instruct", "tp": "1", "gpu": "H100 80GB"}
    assert cells(case, mem_util="0.99")["pred_fits"] == "true"
    assert cells(case, mem_util="0.995")["pred_fits"] == "false"


def test_a_name_of_several_memories_takes_the_smallest() -> None:
    """Qwen3-32B on four 910B: 159,232 tokens were printed, which 32 GB cards hold and 64 GB cards would exceed."""
    case = {**MEMORY, "model": "Qwen/Qwen3-32B", "engine": "vllm-ascend", "engine_version": "", "gpu": "Ascend 910B"}
    found = cells(case, max_model_len="40960")
    assert found["pred_fits"] == "true"
    assert number(found, "kv_tokens") < 1.25 * 159_232
    assert "Ascend 910B4" in found["pred_source"]


def test_v0_reads_prompts_whole() -> None:
    """Qwen2.5-7B at 32,768 tokens: 65,536 · (3 · 18,944 + 4 · 3,584) = 4.34 GiB of activations instead of 1.39."""
    case = {**MEMORY, "model": "Qwen/Qwen2.5-7B-Instruct", "tp": "1", "gpu": "L40S", "engine_version": "0.7.3"}
    long, longer = (number(cells(case, max_model_len=length), "kv_gib_per_gpu") for length in ("32768", "32769"))
    assert longer - long == pytest.approx(4.344 - 1.405, abs=0.01)


def test_sglang_keeps_states_in_a_part_of_their_own() -> None:
    """Its log of Qwen3.5 at TP2: 4.48 GiB of states beside 5.00 of keys and values, which is 0.9 to 1."""
    case = {**MEMORY, "model": "Qwen/Qwen3.5-27B", "engine": "sglang", "engine_version": "", "tp": "2", "gpu": "H200"}
    sparse, dense = (cells(case, model=name) for name in ("Qwen/Qwen3.5-27B", "Qwen/Qwen3-32B"))
    total = accelerator("h200-sxm").engine_memory / 2**30
    runtime = dict(engine("sglang", None, accelerator("h200-sxm")).runtime_bytes)[2] / 2**30
    for found, ratio in ((sparse, 1.9), (dense, 1.0)):
        static = 0.9 * (total - runtime) - number(found, "weights_gib_per_gpu")
        assert number(found, "kv_gib_per_gpu") == pytest.approx(static / ratio, rel=1e-3)
