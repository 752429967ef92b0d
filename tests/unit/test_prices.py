"""Prices: the default is the median of recent on-demand USD prices of that very form factor, or nothing."""

from datetime import date
from statistics import median

import pytest

from planner.catalog import prices as catalogue
from planner.catalog.accelerators import accelerator_ids
from planner.catalog.prices import CATALOGUE_DATE, default_price, first_day, prices, providers, recent, year_before
from planner.errors import CatalogueError


def test_the_catalogue_describes_a_day():
    assert date(2026, 11, 30) == CATALOGUE_DATE


def test_h100_sxm_by_hand():
    # AWS 6.88, Azure 12.29, CoreWeave 6.155, GCP 10.55, Lambda 2.99 and 3.99, Nebius 2.95, OCI 10.0, RunPod 3.49 and 2.69
    found = default_price("h100-sxm")
    assert found is not None
    assert found.usd_per_hour == pytest.approx((3.99 + 6.155) / 2)
    assert (found.low, found.high, found.count) == (2.69, 12.29, 10)
    assert (found.oldest, found.newest) == ("2026", "2026-09-06")


def test_form_factors_are_not_mixed():
    pcie, nvl = default_price("h100-pcie"), default_price("h100-nvl")
    assert pcie is not None
    assert nvl is not None
    assert (pcie.low, pcie.high, pcie.count) == (1.8, 2.79, 2)
    assert nvl.usd_per_hour == 6.98


def test_no_price_is_none_not_a_guess():
    assert default_price("ascend-910c-die") is None
    assert default_price("h800-sxm") is None  # only an assumption in a vendor post
    assert default_price("rtx-5090") is None  # only a spot price
    assert default_price("no-such-part") is None


def test_prices_without_a_stated_form_factor_never_enter():
    loose = [item for item in prices() if not item.accelerator]
    assert loose
    assert all("form factor not stated" in item.note for item in loose)
    assert all(item.accelerator == "h100-sxm" for item in prices("h100-sxm"))


def test_the_window_is_twelve_months_and_moves_with_today():
    assert default_price("h100-sxm", today=date(2028, 1, 1)) is None
    early = default_price("h100-sxm", today=date(2026, 3, 1))
    assert early is not None
    assert early.newest <= "2026-03"


def test_kind_and_provider_narrow_the_choice():
    spot = default_price("h100-sxm", kind="spot")
    assert spot is not None
    assert spot.high < 3.0
    nebius = default_price("h100-sxm", provider="Nebius")
    assert nebius is not None
    assert (nebius.usd_per_hour, nebius.count) == (2.95, 1)
    assert default_price("h100-sxm", provider="nobody") is None


@pytest.mark.parametrize("id", accelerator_ids())
def test_the_default_lies_within_its_range(id):
    found = default_price(id)
    if found is not None:
        used = [
            item.usd_per_hour
            for item in prices(id)
            if item.kind == "on-demand" and item.currency == "USD" and recent(item.date, CATALOGUE_DATE)
        ]
        assert found.low <= found.usd_per_hour <= found.high
        assert found.usd_per_hour == median(used)
        assert found.count == len(used)


def test_a_loosely_dated_price_counts_from_the_earliest_day_it_can_mean():
    assert first_day("2026") == date(2026, 1, 1)
    assert first_day("2026-05") == date(2026, 5, 1)
    assert first_day("2026-05-18") == date(2026, 5, 18)
    assert not recent("2025-06", CATALOGUE_DATE)
    assert not recent("2025", CATALOGUE_DATE)
    assert recent("2025-11-30", CATALOGUE_DATE)
    assert not recent("2026-12-01", CATALOGUE_DATE)


def test_a_year_before_a_leap_day():
    assert year_before(date(2028, 2, 29)) == date(2027, 2, 28)
    assert year_before(date(2026, 11, 30)) == date(2025, 11, 30)


def test_providers_are_those_of_the_prices():
    assert "AWS" in providers()
    assert list(providers()) == sorted(set(providers()))


def test_a_malformed_row_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "prices.csv"
    path.write_text("accelerator,provider,price\nh100-sxm,X,-1\n", encoding="utf-8")
    monkeypatch.setattr(catalogue, "PRICES", path)
    catalogue.records.cache_clear()
    try:
        with pytest.raises(CatalogueError, match=r"prices\.csv"):
            catalogue.records()
    finally:
        catalogue.records.cache_clear()


def test_a_catalogue_without_a_date_is_refused(tmp_path, monkeypatch):
    (tmp_path / "catalogue.toml").write_text('date = "soon"\n', encoding="utf-8")
    monkeypatch.setattr(catalogue, "PRESETS", tmp_path)
    with pytest.raises(CatalogueError, match="date"):
        catalogue._catalogue_date()
