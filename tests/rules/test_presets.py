"""Everything under `presets/`: units in keys, a source and a date, dense peaks, nothing derated, nothing of this machine."""

import csv
import re
import tomllib
from pathlib import Path

import pytest

from planner.catalog import accelerators, engines, prices

PRESETS = accelerators.PRESETS
ACCELERATORS = sorted((PRESETS / "accelerators").glob("*.toml"))
ENGINES = sorted((PRESETS / "engines").glob("*.toml"))
RECORDS = [
    path
    for folder in ("accelerators", "engines", "fabrics", "models")
    for path in sorted((PRESETS / folder).glob("*.toml"))
]
TEXTS = sorted(path for path in PRESETS.rglob("*") if path.suffix in {".toml", ".csv", ".json", ".md"})

UNIT = re.compile(r"_(gb|gib|mib|w|tb_per_s|dense_tflops|dense_tops|gb_per_s_per_direction)$")
COUNTS = {"scale_up_domain", "release_year", "dies"}

DENSE = {
    # TFLOPS without sparsity: bf16, fp8, fp4 (None = none)
    "a100-80g-sxm": (312.0, None, None),
    "l4": (121.0, 242.0, None),
    "l40s": (362.05, 733.0, None),
    "h100-sxm": (989.4, 1978.9, None),
    "h100-pcie": (756.5, 1513.0, None),
    "h200-sxm": (989.4, 1978.9, None),
    "b200-sxm": (2250.0, 4500.0, 9000.0),
    "gb200-nvl72": (2500.0, 5000.0, 10000.0),
    "mi300x": (1307.4, 2614.9, None),
    "mi355x": (2516.6, 5033.2, 10066.3),
    # NVIDIA's and AMD's tables of Ampere, Ada and CDNA 2
    "rtx-a6000": (154.8, None, None),
    "a40": (149.7, None, None),
    "rtx-3080": (59.5, None, None),
    "rtx-4080": (97.5, 194.9, None),
    "rtx-6000-ada": (364.25, 728.5, None),
    "l40": (181.05, 362.1, None),
    "mi250": (362.1, None, None),
    "h200-nvl": (835.5, 1670.5, None),
}

BANDWIDTH = {
    # TB/s of the data sheet: an efficiency hidden in a specification would show here
    "a100-40g-sxm": 1.555,
    "a100-80g-sxm": 2.039,
    "l4": 0.3,
    "l40s": 0.864,
    "rtx-4090": 1.008,
    "h100-sxm": 3.35,
    "h100-pcie": 2.0,
    "h100-nvl": 3.9,
    "h200-sxm": 4.8,
    "b200-sxm": 7.7,
    "gb200-nvl72": 8.0,
    "mi300x": 5.3,
    "v100s-32g-pcie": 1.134,
    "rtx-a6000": 0.768,
    "rtx-6000-ada": 0.96,
    "a40": 0.6958,
    "mi250": 3.2768,
    "gb10": 0.2732,
}

FP8_OVER_BF16 = {
    # parts whose FP8 is not twice BF16, by design
    "gaudi-3": 1.0,
    "inferentia2": 1.0,
    "tpu-v6e": 1.0,
    "trainium2": 1.95,
    "trainium3": 3.75,
    "rubin-nvl72": 4.375,
    "ascend-950dt": 1.89,
}

FP4_OVER_FP8 = {
    "rtx-5080": 4.0,
    "rtx-5090": 4.0,
    "b300-sxm": 3.11,
    "gb300-nvl72": 3.0,
    "trainium3": 1.0,
    "ascend-950dt": 1.94,
}

FOREIGN = re.compile(
    r"(?<![\w./])/(work|root|home|tmp|usr|mnt|opt|var)/|\.\./shared|file:\d|file ids?\b|public file|localhost|127\.0\.0\.1"
    r"|\b10\.\d+\.\d+\.\d+\b|\b192\.168\.|pypi\.org|pythonhosted|registry\.|artifactory|nexus|devpi|_proxy",
    re.IGNORECASE,
)


def name(path: Path) -> str:
    """Folder and file, for test ids."""
    return f"{path.parent.name}/{path.stem}"


def loaded(path: Path) -> dict[str, object]:
    """A preset as it stands in its file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", RECORDS, ids=name)
def test_a_record_says_who_it_is_where_it_is_from_and_when(path):
    record = loaded(path)
    assert record["id"] == path.stem
    assert re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*", path.stem)
    assert record.get("source") or record.get("sources")
    assert re.match(r"\d{4}", str(record["date"]))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(PRESETS)))
def test_nothing_of_this_machine_or_of_private_files(path):
    found = FOREIGN.search(path.read_text(encoding="utf-8-sig"))
    assert found is None, f"{path.name}: {found and found.group()}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(PRESETS)))
def test_files_are_utf8_with_unix_line_ends(path):
    content = path.read_bytes()
    assert b"\r" not in content
    assert content.endswith(b"\n")
    content.decode("utf-8")


@pytest.mark.parametrize("path", ACCELERATORS, ids=name)
def test_an_accelerator_reads_and_has_its_unit_in_each_key(path):
    record = accelerators.read_record(path)
    for key in accelerators.numbers(record):
        assert key in COUNTS or UNIT.search(key), key
    assert set(loaded(path).get("sources", {})) <= set(accelerators.numbers(record))


@pytest.mark.parametrize("path", ACCELERATORS, ids=name)
def test_recalled_numbers_are_labelled_unsourced(path):
    record = accelerators.read_record(path)
    for source in (record.source, *record.sources.values()):
        assert "recalled" not in source or "unsourced" in source, source


@pytest.mark.parametrize(("id", "peaks"), DENSE.items())
def test_peaks_are_the_dense_figures(id, peaks):
    part = accelerators.accelerator(id)
    for precision, expected in zip(("bf16", "fp8", "fp4"), peaks, strict=True):
        assert part.peak.get(precision, 0.0) / 1e12 == pytest.approx(expected or 0.0, rel=1e-3), precision


@pytest.mark.parametrize("id", accelerators.accelerator_ids())
def test_peaks_of_one_part_agree_with_each_other(id):
    peak = accelerators.accelerator(id).peak
    assert peak
    if {"bf16", "fp8"} <= set(peak):
        assert peak["fp8"] / peak["bf16"] == pytest.approx(FP8_OVER_BF16.get(id, 2.0), rel=0.02)
    if {"fp8", "fp4"} <= set(peak):
        assert peak["fp4"] / peak["fp8"] == pytest.approx(FP4_OVER_FP8.get(id, 2.0), rel=0.02)
    if {"bf16", "fp16"} <= set(peak) and id != "gaudi-3":
        assert peak["bf16"] == peak["fp16"]


@pytest.mark.parametrize(("id", "expected"), BANDWIDTH.items())
def test_bandwidth_is_the_data_sheets_with_no_derating(id, expected):
    assert accelerators.accelerator(id).bandwidth == pytest.approx(expected * 1e12)


@pytest.mark.parametrize("id", accelerators.accelerator_ids())
def test_a_drivers_memory_is_near_the_marketing_figure(id):
    part = accelerators.accelerator(id)
    if part.visible_memory is not None:
        assert 0.95 < part.visible_memory / part.memory < 1.09


def test_a_name_means_one_accelerator():
    assert set(accelerators.names(memory_only=False).items()) <= set(accelerators.names(memory_only=True).items())


@pytest.mark.parametrize("path", ENGINES, ids=name)
def test_an_engine_reads_and_sources_every_number_of_every_era(path):
    record = engines.read_record(path)
    assert all(text for era in record.eras for text in era.sources.values())
    assert {"supports_kv", "supports_weights"} <= set(record.sources)


def test_every_price_names_its_form_factor_or_says_that_it_does_not():
    known = set(accelerators.accelerator_ids())
    for record in prices.records():
        assert record.accelerator in known or (record.accelerator == "" and "form factor not stated" in record.note)
        assert prices.first_day(record.date) <= prices.CATALOGUE_DATE
        assert record.source


def test_price_columns_are_those_of_the_contract():
    with prices.PRICES.open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
    assert {"accelerator", "provider", "price", "unit", "kind", "date", "source"} <= set(header)


def test_a_spot_price_is_not_above_the_dearest_on_demand_price():
    for part in accelerators.accelerator_ids():
        spot, asked = prices.default_price(part, kind="spot"), prices.default_price(part)
        if spot is not None and asked is not None:
            assert spot.high <= asked.high, part
