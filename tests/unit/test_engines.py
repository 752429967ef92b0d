"""Engines: eras by version, defaults by device, and memory rules that reproduce what engines print at start."""

from pathlib import Path

import pytest

from planner.catalog import engines as catalogue
from planner.catalog.accelerators import PRESETS, accelerator
from planner.catalog.engines import engine, engine_ids, numbers_of
from planner.errors import CatalogueError
from planner.specs.engine import Engine

GIB = 2.0**30


def pool_gib(rules: Engine, total: float, share: float, weights: float, vocab: int, tp: int) -> float:
    """Cache pool in GiB by the rule of `Budget`, all inputs in GiB."""
    activation = max(rules.sampler_bytes_per_logit * rules.max_num_seqs * vocab, rules.activation_floor) / GIB
    runtime = [taken for degree, taken in rules.runtime_bytes if degree <= tp][-1] / GIB
    graphs = rules.graphs_in_budget * (rules.graph_base / GIB + rules.graph_per_weight_byte * weights)
    match rules.budget:
        case "total":
            return share * total - weights - activation - runtime - graphs
        case "static":
            return share * (total - runtime) - weights
        case "free":
            return share * (total - weights - activation - runtime - graphs)


@pytest.mark.parametrize(
    ("version", "share", "weights", "vocab", "tp", "printed"),
    [
        # start-up logs on H100 80 GB (79.18 or 79.19 GiB), 1024 sequences, 8192 tokens a step: printed cache in GiB
        ("0.19.0", 0.95, 14.99, 128256, 1, 58.11),
        ("0.19.0", 0.95, 7.51, 128256, 2, 63.76),
        ("0.19.0", 0.95, 33.88, 128256, 2, 37.28),
        ("0.19.0", 0.95, 16.96, 128256, 4, 54.09),
        ("0.19.0", 0.95, 15.27, 151936, 1, 57.50),
        ("0.19.0", 0.95, 13.64, 201088, 1, 58.47),
        ("0.19.0", 0.95, 12.56, 32016, 1, 61.66),
        ("0.11.0", 0.90, 14.99, 128256, 1, 51.38),
        ("0.11.0", 0.90, 30.59, 151936, 2, 34.49),
        ("0.16.0", 0.95, 27.52, 151936, 1, 41.94),
        ("0.18.0", 0.95, 27.52, 151936, 1, 45.23),
    ],
)
def test_vllm_pool_is_what_the_engine_printed(version, share, weights, vocab, tp, printed):
    rules = engine("vllm", version, accelerator("h100-sxm"))
    assert pool_gib(rules, 79.19, share, weights, vocab, tp) == pytest.approx(printed, rel=0.01)


def test_sglang_pool_is_what_the_engine_printed():
    # 79 GiB card, default share, FP8 weights 29.15 GiB: KV 35.98 GiB
    rules = engine("sglang", None, accelerator("h100-sxm"))
    assert pool_gib(rules, 79.1, rules.memory_utilisation, 29.15, 151936, 1) == pytest.approx(35.98, rel=0.02)


def test_trtllm_pool_is_what_the_engine_printed():
    # A100 80 GB, 6.53 GiB of weights, 32k vocabulary: 64.75 GiB allocated (version 0.8)
    assert pool_gib(engine("trtllm"), 79.15, 0.90, 6.5264, 32000, 1) == pytest.approx(64.75, rel=0.03)


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("0.5.0.post1", "0"),
        ("0.7.3", "0"),
        ("0.8.5.post1", "0.8"),
        ("0.10.x", "0.8"),
        ("v0.16.0", "0.8"),
        ("0.17.1", "0.17"),
        ("0.20.2rc1.dev249 (fork)", "0.17"),
        ("0.21.0", "0.21"),
        ("0.26.1rc1.dev608+g99a10304d", "0.21"),
        ("1.0", "0.21"),
    ],
)
def test_a_version_selects_its_era(version, since):
    assert engine("vllm", version).since == since


def test_no_version_is_the_newest_era():
    newest = engine("vllm")
    assert (newest.since, newest.version) == ("0.21", "0.30.0")
    assert newest.graphs_in_budget
    assert newest.memory_utilisation == 0.92
    assert not engine("vllm", "0.19.0").graphs_in_budget


def test_versions_are_compared_as_numbers():
    assert numbers_of("v0.26.1rc1.dev608") == (0, 26, 1)
    assert numbers_of("0.9") < numbers_of("0.10.1")
    assert numbers_of("nightly") == ()


def test_a_version_without_a_number_is_refused():
    with pytest.raises(CatalogueError, match="no version number"):
        engine("vllm", "image not in file")


@pytest.mark.parametrize(
    ("device", "seqs", "tokens"),
    [("h100-sxm", 1024, 8192), ("mi300x", 1024, 8192), ("a100-80g-sxm", 256, 2048), ("l40s", 256, 2048)],
)
def test_vllm_batch_limits_follow_the_device(device, seqs, tokens):
    found = engine("vllm", None, accelerator(device))
    assert (found.max_num_seqs, found.token_budget) == (seqs, tokens)


@pytest.mark.parametrize(("device", "share", "chunk"), [("rtx-4090", 0.847, 2048), ("h100-sxm", 0.835, 8192)])
def test_sglang_share_follows_the_device(device, share, chunk):
    # 4090: (24564 - 3760) / 24564; H100: (81559 - 13440) / 81559
    found = engine("sglang", None, accelerator(device))
    assert (found.memory_utilisation, found.token_budget) == (share, chunk)


def test_block_sizes():
    assert {each: engine(each).block_size for each in engine_ids()} == {
        "sglang": 1,
        "trtllm": 32,
        "vllm": 16,
        "vllm-ascend": 128,
    }


def test_what_an_engine_counts_its_share_of():
    assert {each: engine(each).budget for each in engine_ids()} == {
        "sglang": "static",
        "trtllm": "free",
        "vllm": "total",
        "vllm-ascend": "total",
    }


def test_runtime_memory_ascends_in_degree():
    for each in engine_ids():
        degrees = [degree for degree, _ in engine(each).runtime_bytes]
        assert degrees == sorted(set(degrees))
        assert degrees[0] == 1


def test_engines_hash_by_identity():
    assert hash(engine("vllm")) == hash(engine("vllm"))
    assert len({engine("vllm"), engine("vllm", "0.19.0"), engine("sglang")}) == 3


def test_unknown_engine_names_near_ones():
    with pytest.raises(CatalogueError, match="near: vllm"):
        engine("vlm")
    with pytest.raises(CatalogueError, match=r"not in the catalogue$"):
        engine("zzz")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("date =", "day =", "Extra inputs"),
        ('since = "0.8"', 'since = "0.18"', "eras must ascend"),
        ("memory_utilisation = 0.92\n", "", "state memory_utilisation or a reserve_mib"),
        ('graph_base = "start-up logs of 0.10', 'graphs = "start-up logs of 0.10', "sources must be given"),
        ('id = "vllm"', 'id = "other"', "not the file name"),
    ],
)
def test_a_malformed_preset_is_refused(tmp_path: Path, old, new, message):
    text = (PRESETS / "engines" / "vllm.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "vllm.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(CatalogueError, match=message):
        catalogue.read_record(path)


def test_a_device_that_no_entry_covers_is_refused():
    record = catalogue.records()["vllm"]
    era = record.eras[-1].model_copy(update={"devices": record.eras[-1].devices[:1]})
    with pytest.raises(CatalogueError, match="no defaults for this device"):
        catalogue.defaults_on(record, era, accelerator("t4"))


@pytest.mark.parametrize(("device", "gib"), [("h100-sxm", 2.07), ("rtx-5090", 0.75), ("a100-80g-sxm", 0.75)])
def test_switched_all_reduces_hold_buffers(device, gib):
    """vLLM at TP2: 2.07 GiB on H100 (0.19); two RTX 5090: 15.03 consumed less 14.28 of weights."""
    found = dict(engine("vllm", "0.19.0", accelerator(device)).runtime_bytes)
    assert found[2] / GIB == pytest.approx(gib)
    assert dict(engine("vllm", "0.11.0", accelerator(device)).runtime_bytes)[2] / GIB == pytest.approx(0.55)
