"""Timings as the package ships them: which rows are kept, under which names, and what a broken file says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planner.calibrate.kernel_package import is_package, read_package
from planner.calibrate.kernel_tables import ExpertsRow, GemmRow
from planner.cli import main
from planner.errors import InputError


def put(root: Path, where: str, rows: list[dict[str, object]]) -> None:
    path = root / f"{where}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def gemm(**changed: object) -> dict[str, object]:
    row = {"kernel_source": "one", "gemm_dtype": "bfloat16", "m": 16, "n": 7168, "k": 16384, "latency": 0.150187}
    return {**row, **changed}


def expert(**changed: object) -> dict[str, object]:
    sizes = {"num_tokens": 64, "hidden_size": 4096, "inter_size": 14336, "topk": 2, "num_experts": 8}
    layout = {"moe_tp_size": 1, "moe_ep_size": 8, "distribution": "balanced"}
    return {"kernel_source": "one", "moe_dtype": "fp8", **sizes, **layout, "latency": 2.0, **changed}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "h100_sxm/gemm/vllm/0.9.0/gemm_perf", [gemm(latency=9.0)])
    put(tmp_path, "h100_sxm/gemm/vllm/0.24.0/gemm_perf", [gemm(), gemm(m=15), gemm(n=7169), gemm(latency=0.2)])
    put(tmp_path, "another/gemm/vllm/0.24.0/gemm_perf", [gemm()])
    return tmp_path


def test_rows_of_the_cut_of_the_newest_version_in_microseconds(root: Path) -> None:
    assert is_package(root)
    (row,) = read_package(root).operators
    assert isinstance(row, GemmRow)
    assert (row.gpu, row.backend, row.backend_version, row.precision) == ("h100_sxm", "vllm", "0.24.0", "bfloat16")
    assert (row.shape, row.m, row.measured_us) == ("DSv3 o_proj tp1", 16, pytest.approx(150.187))


def test_an_engine_that_tunes_takes_the_fastest_kernel_and_the_others_the_newest(root: Path) -> None:
    put(root, "h100_sxm/moe/trtllm/1.3.0rc10/moe_perf", [expert(), expert(kernel_source="two", latency=1.0)])
    put(root, "h100_sxm/moe/trtllm/1.3.0rc9/moe_perf", [expert(latency=3.0), expert(moe_ep_size=2)])
    put(root, "h100_sxm/moe/vllm/0.9.0/moe_perf", [expert(), expert(kernel_source="two", latency=1.5)])
    put(root, "h100_sxm/moe/vllm/0.24.0/moe_perf", [expert(latency=4.0), expert(distribution="uniform")])
    rows = [row for row in read_package(root).operators if isinstance(row, ExpertsRow)]
    found = {(row.backend, row.kernel_source): (row.backend_version, row.measured_us) for row in rows}
    assert found == {
        ("trtllm", "two"): ("1.3.0rc10", 1000.0),
        ("vllm", "one"): ("0.24.0", 4000.0),
        ("vllm", "two"): ("0.9.0", 1500.0),
    }


def test_a_context_is_the_tokens_before_and_the_new_one(root: Path) -> None:
    heads = {
        "num_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "kv_cache_dtype": "fp8",
        "kernel_source": "one",
    }
    step = {"batch_size": 4, "isl": 1, "step": 2047, "window_size": 0, "beam_width": 1, "latency": 0.01, **heads}
    rows = [step, {**step, "window_size": 128}, {**step, "num_key_value_heads": 16}]
    put(root, "h100_sxm/attention/sglang/0.5.14/generation_attention_perf", rows)
    (row,) = [row for row in read_package(root).operators if row.kind == "attn_decode"]
    assert (row.ctx, row.nkv, row.shape, row.precision) == (2048, 2, "L70 tp4", "fp8")


def test_messages_are_elements_of_two_bytes(root: Path) -> None:
    link = {"op_name": "all_gather", "kernel_source": "NCCL", "num_gpus": 4, "message_size": 256, "latency": 0.01559}
    put(root, "h100_sxm/comm/nccl/2.29.2/nccl_perf", [{**link, "nccl_dtype": d} for d in ("half", "int8")])
    (row,) = read_package(root).collectives
    assert (row.kernel, row.op, row.bytes, row.measured_us) == ("nccl", "all_gather", 512.0, pytest.approx(15.59))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "cannot be read as Parquet"),
        (b"", "cannot be read as Parquet"),
        (None, "must have the column latency"),
    ],
)
def test_a_broken_file_is_named_in_one_sentence(
    root: Path, content: bytes | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / "h100_sxm/gemm/vllm/0.24.0/gemm_perf.parquet"
    if content is None:
        put(root, "h100_sxm/gemm/vllm/0.24.0/gemm_perf", [{"colour": "red"}])
    else:
        path.write_bytes(content)
    assert main(["calibrate", "--kernels", str(root), "--out", str(root)]) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("--kernels = h100_sxm/gemm/vllm/0.24.0/gemm_perf.parquet: ")
    assert said in complaint
    assert len(complaint.splitlines()) == 1


def test_a_file_without_a_needed_column_is_refused(root: Path) -> None:
    put(root, "h100_sxm/gemm/vllm/0.24.0/gemm_perf", [{k: v for k, v in gemm().items() if k != "kernel_source"}])
    with pytest.raises(InputError, match="kernel_source"):
        read_package(root)
    put(root, "h100_sxm/gemm/vllm/0.24.0/gemm_perf", [{k: v for k, v in gemm().items() if k != "k"}])
    with pytest.raises(InputError, match="must have the column k"):
        read_package(root)


def test_a_folder_of_tables_is_no_package(tmp_path: Path) -> None:
    assert not is_package(tmp_path)
    assert not is_package(tmp_path / "nowhere")
