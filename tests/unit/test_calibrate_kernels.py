"""Kernel constants from tables of timings: recovered where the truth is known, one clear sentence where a table is not."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from planner.calibrate.kernel_fit import Errors
from planner.calibrate.kernel_lend import lent
from planner.calibrate.kernel_presets import preset_text, write_presets
from planner.calibrate.kernel_refit import refit
from planner.calibrate.kernel_tables import Tables, read_tables
from planner.catalog.profile_records import FOLDER, CollectiveRecord, KernelTable, LawRecord, read
from planner.cli import main
from planner.errors import InputError

PEAK, BANDWIDTH = 1000.0, 4.0  # TFLOP/s, TB/s
TRUTH = {
    "gemm": {"floor_us": 5.0, "eff_bw": 0.8, "eff_flops": 0.7, "p": 2.5},
    "experts": {"floor_us": 20.0, "eff_bw": 0.9, "eff_flops": 0.5, "p": 1.5},
    "attn_decode": {"floor_us": 9.0, "eff_bw": 0.85, "rise_us": 12.0, "rise_scale_us": 30.0},
    "mla_decode": {
        "floor_us": 14.0,
        "eff_bw": 0.75,
        "eff_flops": 0.6,
        "p": 2.0,
        "rise_us": 8.0,
        "rise_scale_us": 10.0,
    },
    "attn_prefill": {"floor_us": 15.0, "eff_flops": 0.55, "half_length_tokens": 900.0},
    "mla_prefill": {"floor_us": 11.0, "eff_flops": 0.65, "half_length_tokens": 1400.0},
}
OTHERS = {
    "eff_bw": 1.0,
    "eff_flops": 0.55,
    "p": math.inf,
    "rise_us": 0.0,
    "rise_scale_us": 1.0,
    "half_length_tokens": 0.0,
}
ALPHA_US, BUS_GB_PER_S = 6.0, 300.0


def taken_us(kind: str, flops: float, moved: float, length: float = 0.0) -> float:
    """The law by hand [us]."""
    c = {**OTHERS, **TRUTH[kind]}
    compute = flops / (c["eff_flops"] * PEAK * 1e6) * (1 + c["half_length_tokens"] / max(length, 1.0))
    memory = moved / (c["eff_bw"] * BANDWIDTH * 1e6)
    both = max(compute, memory) if math.isinf(c["p"]) else (compute ** c["p"] + memory ** c["p"]) ** (1 / c["p"])
    return c["floor_us"] + both + c["rise_us"] * (1 - math.exp(-memory / c["rise_scale_us"]))


def gemms() -> Iterator[dict[str, object]]:
    shapes = ((8192, 8192), (4096, 7168), (65536, 8192), (2048, 1024))
    for (n, k), m in itertools.product(shapes, [2**power for power in range(0, 15, 2)]):
        taken = taken_us("gemm", 2.0 * m * n * k, 2.0 * n * k + 2.0 * m * (n + k))
        yield {"shape": f"{n}x{k}", "m": m, "n": n, "k": k, "measured_us": taken}


def experts() -> Iterator[dict[str, object]]:
    """Even and skewed routing; on eight ranks the fullest one of skewed routing takes twice as long as an even one."""
    tokens = (1, 16, 64, 256, 1024, 4096, 8192)
    for (count, k, hidden, inner), t, ranks in itertools.product(
        ((128, 8, 4096, 1536), (8, 2, 4096, 14336)), tokens, (1, 8)
    ):
        params = 3 * hidden * inner
        flops, activations = 2.0 * t * k * params / ranks, 4.0 * t * k * hidden / ranks
        even = taken_us("experts", flops, min(count, t * k) / ranks * params * 2.0 + activations)
        hit = count * (1 - (1 - k / count) ** t)
        drawn = taken_us("experts", flops, hit / ranks * params * 2.0 + activations)
        sizes = {"num_tokens": t, "hidden_size": hidden, "inter_size": inner, "topk": k, "num_experts": count}
        both = {"shape": f"E{count}", **sizes, "moe_tp_size": 1, "moe_ep_size": ranks}
        yield {**both, "distribution": "balanced", "measured_us": even}
        yield {**both, "distribution": "power_law_1.01", "measured_us": drawn if ranks == 1 else 2.0 * even}


def decodes() -> Iterator[dict[str, object]]:
    for heads, batch, context in itertools.product((8, 64), (1, 4, 16, 64, 256), (128, 1024, 8192, 32768)):
        taken = taken_us("attn_decode", 512.0 * heads * batch * context, heads / 8 * 512.0 * batch * context)
        sizes = {"batch_size": batch, "ctx": context, "num_heads": heads, "nkv": heads // 8, "head_dim": 128}
        yield {"shape": f"{heads} heads", **sizes, "measured_us": taken}


def latent_decodes() -> Iterator[dict[str, object]]:
    for heads, batch, context in itertools.product((16, 32, 128), (1, 4, 16, 64, 256), (128, 1024, 8192, 32768)):
        taken = taken_us("mla_decode", 2.0 * heads * 1088 * batch * context, 576 * 2.0 * batch * context)
        yield {"shape": f"{heads} heads", "batch_size": batch, "ctx": context, "num_heads": heads, "measured_us": taken}


def prefills() -> Iterator[dict[str, object]]:
    for heads, batch, length in itertools.product((8, 64), (1, 4), (128, 512, 2048, 8192, 16384)):
        taken = taken_us("attn_prefill", 256.0 * heads * batch * length**2, 0.0, length)
        sizes = {"batch_size": batch, "isl": length, "num_heads": heads, "nkv": heads // 8, "head_dim": 128}
        yield {"shape": f"{heads} heads", "kv_cache_dtype": "bfloat16", **sizes, "measured_us": taken}


def latent_prefills() -> Iterator[dict[str, object]]:
    for heads, batch, length in itertools.product((16, 128), (1, 4), (128, 512, 2048, 8192, 16384)):
        taken = taken_us("mla_prefill", 320.0 * heads * batch * length**2, 0.0, length)
        sizes = {"batch_size": batch, "isl": length, "num_heads": heads}
        yield {"shape": f"{heads} heads", "kv_cache_dtype": "bfloat16", **sizes, "measured_us": taken}


def collectives() -> Iterator[dict[str, object]]:
    for ranks, size in itertools.product((2, 8), [2.0**power for power in range(10, 28, 2)]):
        taken = ALPHA_US + 2 * (ranks - 1) / ranks * size / (BUS_GB_PER_S * 1e3)
        yield {"kernel": "ring", "op": "all_reduce", "num_gpus": ranks, "bytes": size, "measured_us": taken}


TABLES: dict[str, Callable[[], Iterator[dict[str, object]]]] = {
    "gemm.csv": gemms,
    "moe_gemm.csv": experts,
    "attn_decode.csv": decodes,
    "mla_decode.csv": latent_decodes,
    "attn_prefill.csv": prefills,
    "mla_prefill.csv": latent_prefills,
    "comm_collectives.csv": collectives,
}
COMMON = {
    "gpu": "h100_sxm",
    "backend": "trtllm",
    "backend_version": "1.0",
    "kernel_source": "one",
    "precision": "bfloat16",
}


def write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys((*COMMON, *rows[0]))))
        writer.writeheader()
        writer.writerows({**COMMON, **row} for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in TABLES.items():
        write(tmp_path / name, list(rows()))
    return tmp_path


def record(kind: str, **changed: object) -> LawRecord:
    """A law as it may stand before the fit: far from the truth."""
    plain = {
        "floor_us": 1.0,
        "eff_bw": 0.3,
        "eff_flops": 0.55,
        "p": 1.0,
        "source": f"made, {kind}, trtllm one bfloat16",
    }
    if kind not in ("gemm", "experts", "mla_decode"):
        plain |= {"p": math.inf}
    if "prefill" in kind:
        plain |= {"eff_bw": 1.0, "half_length_tokens": 1.0}
    if "decode" in kind:
        plain |= {"rise_us": 1.0}
    fixed = {"engine": "trtllm", "kind": kind, "precision": "bf16", "math": "bf16", "peak_tflops": PEAK}
    rest = {"bandwidth_tb_per_s": BANDWIDTH, "tag": "fitted", "rows": 1, "median_error": 0.9}
    return LawRecord.model_validate({**fixed, **rest, **plain, **changed})


def all_reduce(**changed: object) -> CollectiveRecord:
    fixed = {"engine": "trtllm", "op": "all_reduce", "devices": (2, 8, 16), "alpha_us": (1.0, 1.0, 9.0)}
    rest = {"bus_gb_per_s": (1.0, 1.0, 99.0), "link_gb_per_s": 450.0, "tag": "fitted", "rows": 1, "median_error": 0.9}
    return CollectiveRecord.model_validate({**fixed, **rest, "source": "made, all_reduce, trtllm 1.0 ring", **changed})


def table(*laws: LawRecord, collective: tuple[CollectiveRecord, ...] = ()) -> KernelTable:
    head = {"id": "kernels-h100-sxm", "accelerator": "h100-sxm", "licence": "made", "date": "2026-11-30"}
    return KernelTable(**head, law=laws, collective=collective)


@pytest.fixture
def tables(folder: Path) -> Tables:
    return read_tables(folder)


# --- constants that are known -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", TRUTH)
def test_known_constants_are_recovered(tables: Tables, kind: str) -> None:
    found = refit(table(record(kind), *([record("attn_prefill")] if kind == "attn_decode" else [])), tables)
    law = found.table.law[0]
    for name, true in TRUTH[kind].items():
        assert getattr(law, name) == pytest.approx(true, rel=0.02), name
    assert law.median_error < 0.005
    assert law.out_of_fold_error is not None
    assert law.out_of_fold_error < 0.01
    assert law.rows == found.changes[0].new.rows
    assert found.changes[0].old.median > 0.1


def test_a_few_wild_timings_do_not_bend_the_law(folder: Path) -> None:
    rows = list(gemms())
    for row in rows[::8]:
        row["measured_us"] = 10 * float(str(row["measured_us"]))
    write(folder / "gemm.csv", rows)
    law = refit(table(record("gemm")), read_tables(folder)).table.law[0]
    assert (law.floor_us, law.eff_bw, law.eff_flops) == pytest.approx((5.0, 0.8, 0.7), rel=0.05)


def test_the_fullest_rank_under_skew_is_told_and_not_fitted(tables: Tables) -> None:
    found = refit(table(record("experts")), tables)
    assert found.table.law[0].rows == 2 * 7 * 3  # shapes x tokens x (even on 1 and 8 ranks, skewed on 1)
    said = "skewed routing: the law is off by 0 % on one rank (evenly routed 0 %), the fullest rank takes 2.0 times on 8 ranks"
    assert found.table.law[0].note.startswith(said)


def test_collectives_by_group_size(tables: Tables) -> None:
    found = refit(table(collective=(all_reduce(),)), tables).table.collective[0]
    assert found.alpha_us == pytest.approx((ALPHA_US, ALPHA_US, 9.0), rel=0.01)  # 16 devices were not timed
    assert found.bus_gb_per_s == pytest.approx((BUS_GB_PER_S, BUS_GB_PER_S, 99.0), rel=0.01)
    assert (found.rows, found.median_error) == (18, pytest.approx(0.0, abs=0.005))


def test_constants_have_three_significant_digits(tables: Tables) -> None:
    law = refit(table(record("mla_decode")), tables).table.law[0]
    for name in TRUTH["mla_decode"]:
        value = getattr(law, name)
        assert value == float(f"{value:.3g}")


def test_errors_by_hand() -> None:
    found = Errors.of(np.array([0.5, 1.0, 1.1, 1.2, 2.0]))  # off by 50, 0, 10, 20, 100 %
    assert (found.rows, found.median, found.bias) == (5, pytest.approx(0.2), 1.1)
    assert found.p90 == pytest.approx(0.8)  # 60 % of the way from 50 to 100 %
    assert found.mean == pytest.approx((2 * math.log(2) + math.log(1.1) + math.log(1.2)) / 5)


# --- what is fitted to what -------------------------------------------------------------------------


def test_a_law_without_timings_stays(tables: Tables) -> None:
    other = record("gemm", precision="fp8", math="fp8")
    found = refit(table(record("gemm"), other), tables)
    assert found.table.law[1] == other
    assert (len(found.changes), found.kept) == (1, 1)


def test_a_borrower_follows_its_lender_and_keeps_its_reason(tables: Tables) -> None:
    borrower = record("gemm", engine="vllm", tag="borrowed", note="kernel of trtllm: no rows")
    found = refit(table(record("gemm"), borrower), tables).table
    lender, follower = lent(found, (found,)).law
    assert follower == lender.model_copy(
        update={"engine": "vllm", "tag": "borrowed", "note": "kernel of trtllm: no rows"}
    )


def test_a_borrower_on_another_accelerator_follows_at_its_own_link(tables: Tables) -> None:
    lender = refit(table(record("experts"), collective=(all_reduce(),)), tables).table
    far = {"tag": "borrowed", "note": "at half the link"}
    law = record("experts", source="made, experts, trtllm one bfloat16; older fit on h100-sxm", **far)
    link = all_reduce(source="made, all_reduce, trtllm 1.0 ring on h100-sxm", link_gb_per_s=225.0, **far)
    borrower = table(law, collective=(link,)).model_copy(update={"accelerator": "l40s", "id": "kernels-l40s"})
    found = lent(borrower, (lender, borrower))
    assert found.law[0].source == "made, experts, trtllm one bfloat16 on h100-sxm"
    assert (found.law[0].floor_us, found.law[0].note) == (lender.law[0].floor_us, "at half the link")
    assert found.collective[0].bus_gb_per_s == pytest.approx((150.0, 150.0, 49.5), rel=0.01)
    assert lent(found, (lender, found)) == found


def test_a_source_chooses_among_kernels(folder: Path) -> None:
    rows = list(gemms())
    slow = [{**row, "measured_us": 3 * float(str(row["measured_us"]))} for row in rows]
    with (folder / "gemm.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys((*COMMON, *rows[0]))))
        writer.writeheader()
        writer.writerows({**COMMON, **row} for row in rows)
        writer.writerows({**COMMON, "kernel_source": "two", **row} for row in slow)
    laws = (record("gemm"), record("gemm", source="made, gemm, trtllm two bfloat16", precision="bf16"))
    fast, three_times = refit(table(*laws), read_tables(folder)).table.law
    assert three_times.floor_us == pytest.approx(3 * fast.floor_us, rel=0.02)


def test_what_was_decided_stays_in_note_and_source(tables: Tables) -> None:
    odd = record("attn_decode", note="slow with few sequences; poor fit: half the timed rows are off by more than 40 %")
    sourced = odd.source + "; eff_flops of its prefill; refit"
    law = refit(table(odd.model_copy(update={"source": sourced}), record("attn_prefill")), tables).table.law[0]
    assert law.note == "slow with few sequences"
    assert law.source == f"{odd.source}; eff_flops of its prefill"


# --- files ------------------------------------------------------------------------------------------


def test_files_read_back_and_are_the_same_again(tables: Tables, tmp_path: Path) -> None:
    asked = table(*map(record, TRUTH), collective=(all_reduce(), all_reduce(engine="nccl", op="all_gather")))
    texts = []
    for _ in range(2):
        found = refit(asked, tables).table
        write_presets((found,), tmp_path)
        content = (tmp_path / "kernels-h100-sxm.toml").read_bytes()
        assert read(tmp_path / "kernels-h100-sxm.toml", KernelTable) == found
        texts.append(content)
    assert texts[0] == texts[1]
    assert b"\r" not in texts[0]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("kernels-*.toml")), ids=lambda path: path.stem)
def test_the_presets_are_written_as_the_command_writes_them(path: Path) -> None:
    assert preset_text(read(path, KernelTable)) == path.read_text(encoding="utf-8")


def test_a_second_fit_starts_where_the_first_ended_and_ends_there(tables: Tables) -> None:
    once = refit(table(*map(record, TRUTH), collective=(all_reduce(),)), tables).table
    assert preset_text(refit(once, tables).table) == preset_text(once)


def test_the_command_writes_and_reports(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert main(["calibrate", "--kernels", str(folder), "--out", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].split()[:3] == ["accelerator", "kind", "precision"]
    assert said[1].split()[:5] == ["h100-sxm", "gemm", "bf16", "trtllm", "32"]
    assert said[-1].endswith("have no timings in this folder and stay as they are.")
    assert len(list(out.glob("kernels-*.toml"))) == 9


# --- tables that are not what they should be --------------------------------------------------------


def cut(text: str) -> str:
    return text[: len(text) * 2 // 3].rstrip("\n0123456789.,")


def cell(name: str, value: str) -> Callable[[str], str]:
    """A table with one cell replaced."""

    def replaced(text: str) -> str:
        header, first, *others = text.split("\r\n")
        cells = first.split(",")
        cells[header.split(",").index(name)] = value
        return "\r\n".join((header, ",".join(cells), *others))

    return replaced


BROKEN: dict[str, Callable[[str], str]] = {
    "cut off in a row": cut,
    "cut off after few rows": lambda text: "\r\n".join(text.split("\r\n")[:5]) + "\r\n",
    "empty": lambda _: "",
    "of something else": lambda _: "model,gpu,engine\nllama,h100,vllm\n",
    "not a number": cell("m", "many"),
    "not finite": cell("measured_us", "nan"),
    "infinite": cell("measured_us", "1e999"),
    "negative": cell("n", "-4096"),
    "a formula": cell("k", "=cmd|'/C calc'!A0"),
    "terminal codes": cell("m", "\x1b[31mred"),
    "markup": cell("n", "<script>alert(1)</script>"),
    "a giant number": cell("m", "9" * 5000),
    "more cells than columns": lambda text: text.replace("\r\n", ",1,2,3\r\n", 3).replace(",1,2,3\r\n", "\r\n", 1),
    "a column twice": lambda text: text.replace("shape", "gpu", 1),
    "an open quote": cell("shape", '"open'),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_table_is_refused_in_one_sentence(
    folder: Path, tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "gemm.csv"
    path.write_bytes(BROKEN[how](path.read_bytes().decode()).encode())
    out = tmp_path / "out"
    out.mkdir()
    assert main(["calibrate", "--kernels", str(folder), "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "gemm.csv" in said.err
    assert said.err.rstrip("\n").isprintable()
    assert len(said.err) < 400
    assert list(out.iterdir()) == []


def test_binary_content_is_refused(folder: Path) -> None:
    (folder / "gemm.csv").write_bytes(b"PAR1\x00\xff\xfe" * 100)
    with pytest.raises(InputError, match=r"gemm\.csv"):
        read_tables(folder)


def test_missing_tables_are_named(folder: Path) -> None:
    (folder / "gemm.csv").unlink()
    (folder / "mla_decode.csv").unlink()
    with pytest.raises(InputError, match=r"must be a folder that holds gemm\.csv, mla_decode\.csv"):
        read_tables(folder)
    with pytest.raises(InputError, match="must be a folder"):
        read_tables(folder / "nowhere")


def test_a_folder_to_write_to_must_be_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--kernels", str(folder), "--out", str(folder / "nowhere")]) == 2
    assert capsys.readouterr().err == "--out = nowhere: must be a folder that exists\n"


def test_a_law_with_a_handful_of_timings_is_refused(folder: Path) -> None:
    write(folder / "gemm.csv", [{**row, "gpu": "h100_sxm" if at < 5 else "b60"} for at, row in enumerate(gemms())])
    with pytest.raises(InputError, match="h100-sxm trtllm gemm bf16 = 5 rows"):
        refit(table(record("gemm")), read_tables(folder))
