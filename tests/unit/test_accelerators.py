"""Accelerators: SI at the door, unknown stays unknown, names resolve only when they fix the form factor."""

import dataclasses
from pathlib import Path

import pytest

from planner.catalog import accelerators as catalogue
from planner.catalog.accelerators import accelerator, accelerator_ids, find_accelerator, smallest_variant
from planner.errors import CatalogueError

GIB = 2.0**30

MINIMAL = """
id = "new"
name = "New"
vendor = "V"
unit = "GPU"
source = "a data sheet"
date = "2026-01-01"
confidence = "low"
scale_up_name = "link"
memory_gb = 10
hbm_tb_per_s = 1.0
"""


def test_the_catalogue_is_complete_and_sorted():
    ids = accelerator_ids()
    assert len(ids) == 77
    assert list(ids) == sorted(ids)
    for (
        expected
    ) in "a100-80g-sxm h100-sxm h100-pcie h200-sxm b200-sxm gb200-nvl72 mi300x l40s rtx-4090 ascend-910c-die".split():
        assert expected in ids


def test_si_units_of_h100():
    h100 = accelerator("h100-sxm")
    assert h100.memory == 80e9
    assert h100.visible_memory == 81559 * 2**20
    assert h100.framework_memory == pytest.approx(79.1 * GIB)
    assert h100.bandwidth == 3.35e12
    assert h100.peak == {"bf16": 989.4e12, "fp16": 989.4e12, "fp8": 1978.9e12, "int8": 1978.9e12}
    assert h100.scale_up_bandwidth == 450e9
    assert h100.scale_up_domain == 8
    assert h100.scale_out_bandwidth == 50e9
    assert h100.tdp == 700.0


def test_vendors_that_write_gb_for_gib_are_converted_as_gib():
    assert accelerator("mi300x").memory == 192 * GIB
    assert accelerator("trainium2").memory == 96 * GIB
    assert accelerator("h200-sxm").memory == 141e9


def test_unknown_stays_unknown_and_is_said():
    part = accelerator("a100-40g-pcie")
    assert part.visible_memory is None
    assert part.physical_memory == part.memory == 40e9
    assert any("Driver-visible memory is not known" in note for note in part.notes)
    assert accelerator("l40s").scale_up_domain is None
    assert accelerator("tpu-v5e").tdp is None
    assert "bf16" not in accelerator("t4").peak


def test_physical_memory_is_the_drivers_and_engine_memory_the_frameworks():
    h100 = accelerator("h100-sxm")
    assert h100.physical_memory == h100.visible_memory
    assert h100.engine_memory == h100.framework_memory
    bare = dataclasses.replace(h100, framework_memory=None, visible_memory=None)
    assert bare.engine_memory == bare.physical_memory == 80e9


def test_framework_memory_is_a_little_under_the_drivers():
    for part in map(accelerator, accelerator_ids()):
        if part.framework_memory is not None and part.visible_memory is not None:
            assert 0.90 < part.framework_memory / part.visible_memory <= 1.0, part.id


def test_every_number_has_a_source():
    for part in map(accelerator, accelerator_ids()):
        assert {"hbm_tb_per_s", "scale_up_gb_per_s_per_direction"} <= set(part.sources), part.id
        assert all(part.sources.values())


def test_borrowed_constants_point_at_an_accelerator_with_its_own():
    own = {part for part in accelerator_ids() if accelerator(part).borrows is None}
    assert own == set(
        "a100-80g-sxm l40s rtx-pro-6000-server h100-sxm h200-sxm b200-sxm b300-sxm gb200-nvl72 gb300-nvl72".split()
    )
    assert {accelerator(part).borrows for part in accelerator_ids()} - {None} <= own


def test_an_accelerator_borrows_from_its_own_generation_or_the_next_that_was_timed():
    lent = {
        "a100-80g-sxm": "v100s-32g-pcie v100-32g-sxm a10g a800-80g-sxm rtx-3070 rtx-3080 rtx-3080-ti rtx-3090-ti rtx-a6000 a40",
        "l40s": "rtx-4000-ada rtx-5000-ada rtx-6000-ada l40 l20 rtx-4070-ti rtx-4080 rtx-4090d",
        "rtx-pro-6000-server": "gb10 rtx-5080 rtx-pro-6000-workstation",
        "h100-sxm": "mi210 mi250",
        "h200-sxm": "h200-nvl",
    }
    for lender, borrowers in lent.items():
        assert {accelerator(part).borrows for part in borrowers.split()} == {lender}


def test_an_accelerator_hashes_by_identity():
    assert len({accelerator("h100-sxm"), accelerator("h100-sxm"), accelerator("h200-sxm")}) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("H100-SXM", "h100-sxm"),
        ("H200", "h200-sxm"),
        ("RTX-PRO-6000-SE", "rtx-pro-6000-server"),
        ("Ascend-910C(die)", "ascend-910c-die"),
        ("Ascend-910C", "ascend-910c-package"),
        ("A100-80G-SXM", "a100-80g-sxm"),
        ("rtx 4090", "rtx-4090"),
        ("TPU-v6e", "tpu-v6e"),
        ("Gaudi2", "gaudi-2"),
        ("RTX-A6000", "rtx-a6000"),
        ("RTX-3090Ti", "rtx-3090-ti"),
        ("RTX-6000-Ada", "rtx-6000-ada"),
        ("RTX-4090D", "rtx-4090d"),
        ("V100S-32G", "v100s-32g-pcie"),
        ("MI250", "mi250"),
        ("H200-NVL", "h200-nvl"),
        ("GB10 (DGX Spark)", "gb10"),
        ("RTX-PRO-6000-WS", "rtx-pro-6000-workstation"),
    ],
)
def test_names_of_measurement_tables_resolve(text, expected):
    found = find_accelerator(text)
    assert found is not None
    assert found.id == expected


@pytest.mark.parametrize(
    "text", ["H100", "V100", "RTX-PRO-6000", "Apple-M2-Ultra", "H800?", "Ascend-910B", "A100", "", "SN40L"]
)
def test_names_that_fix_no_form_factor_or_are_unknown_do_not_resolve(text):
    assert find_accelerator(text) is None


def test_names_that_fix_the_memory_only_resolve_for_memory_only():
    found = find_accelerator("H100 80GB", memory_only=True)
    assert found is not None
    assert found.id == "h100-sxm"
    assert find_accelerator("H100 80GB") is None
    assert accelerator("h100-pcie").memory == found.memory


def test_unknown_id_names_near_ones():
    with pytest.raises(CatalogueError, match="h100-sxm"):
        accelerator("h100-smx")
    with pytest.raises(CatalogueError, match="not in the catalogue"):
        accelerator("zzzzzzzz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("memory_gib = 10", "either memory_gb or memory_gib"),
        ("visible_mib = 1\nvisible_gib = 1", "either visible_mib or visible_gib"),
        ("bandwidth = 3", "Extra inputs"),
        ("tdp_w = -1", "greater than 0"),
        ('[sources]\ntdp_w = "x"', "sources without a number"),
        ("tdp_w = ", "Invalid value"),
    ],
)
def test_a_malformed_preset_is_refused(tmp_path: Path, change, message):
    path = tmp_path / "new.toml"
    path.write_text(MINIMAL + change, encoding="utf-8")
    with pytest.raises(CatalogueError, match=message):
        catalogue.read_record(path)


def test_an_id_that_is_not_the_file_name_is_refused(tmp_path: Path):
    path = tmp_path / "other.toml"
    path.write_text(MINIMAL, encoding="utf-8")
    with pytest.raises(CatalogueError, match="not the file name"):
        catalogue.read_record(path)


def test_a_minimal_preset_reads(tmp_path: Path):
    path = tmp_path / "new.toml"
    path.write_text(MINIMAL, encoding="utf-8")
    part = catalogue.from_record(catalogue.read_record(path))
    assert part.peak == {}
    assert part.sources == {"memory_gb": "a data sheet", "hbm_tb_per_s": "a data sheet"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ascend 910B", "ascend-910b4"),
        ("A100", "a100-40g-pcie"),
        ("L4", None),
        ("", None),
        ("TPU", None),
        ("K80x", None),
    ],
)
def test_the_smallest_variant_of_a_name(text, found):
    """910B1 to 910B3 have 64 GB, 910B4 has 32; A100 has 40 or 80 GB; short words name no family."""
    variant = smallest_variant(text)
    assert (variant and variant.id) == found
