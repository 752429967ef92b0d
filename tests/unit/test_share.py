"""Links: one spelling out, strict in."""

from __future__ import annotations

import base64
import json
import zlib

import pytest

from planner.catalog.custom import DECODE_LIMIT, custom_model, decode_custom, encode_custom
from planner.catalog.scenarios import load_preset, preset_ids, presets
from planner.catalog.version import catalogue_version
from planner.errors import Fault, InputError, LinkError, ModelConfigError
from planner.share import (
    MAX_QUERY,
    PAGE_PARAMETERS,
    address,
    from_link,
    from_pairs,
    page_values,
    pinned,
    scenario_from_text,
    to_link,
)
from planner.specs.scenario import SCENARIO_FIELDS, Scenario

CONFIG = json.dumps(
    {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1376,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    indent=2,
)


def faults(link: str) -> tuple[Fault, ...]:
    with pytest.raises(LinkError) as caught:
        from_link(link)
    return caught.value.faults


def fault(link: str) -> Fault:
    found = faults(link)
    assert len(found) == 1
    return found[0]


def test_only_what_differs_is_written_in_one_order() -> None:
    assert to_link(Scenario()) == "?"
    assert to_link(Scenario(sla_tpot_ms=30.0, tp=4, overlap=True, load=0.80)) == "?tp=4&overlap=on&sla_tpot_ms=30"
    assert to_link(Scenario(tp=2), "https://host/plan") == "https://host/plan?tp=2"


def test_text_is_percent_encoded() -> None:
    link = to_link(Scenario(provider="A & B/C+D"))
    assert link == "?provider=A%20%26%20B%2FC%2BD"


def test_numbers_have_their_shortest_spelling() -> None:
    assert to_link(Scenario(prefix=0.30000000000000004)) == "?prefix=0.30000000000000004"
    assert to_link(Scenario(prefix=1e-07)) == "?prefix=0.0000001"
    assert to_link(Scenario(qps=1e6)) == "?qps=1000000"
    assert from_link("prefix=0.50&sla_tpot_ms=30.0") == Scenario(prefix=0.5, sla_tpot_ms=30)


def test_url_query_and_bare_query_read_alike() -> None:
    expected = Scenario(tp=4, weights="fp8")
    for text in (
        "https://host:8501/plan?weights=fp8&tp=4#top",
        "?tp=4&weights=fp8",
        "tp=4&weights=fp8",
        " ?tp=4&weights=fp8\n",
    ):
        assert from_link(text) == expected
    assert from_link("") == from_link("?") == from_link("https://host/") == Scenario()


def test_streamlits_own_parameters_are_ignored() -> None:
    assert from_link("embed=true&embed_options=a&embed_options=b&tp=2") == Scenario(tp=2)


@pytest.mark.parametrize(
    "link",
    [
        "tp=banana", "tp=", "tp", "tp=4.0", "tp=1e1", "tp=1_0", "tp=+4", "tp=%2B4", "tp=%204", "tp=4%0A", "tp=04",
        "tp=0x4", "tp=%D9%A4", "tp=-1", "tp=0", "tp=1025", "tp=99999999999999999999999", "tp=" + "9" * 5000, "tp=%FF",
        "tp=2&tp=2", "tp=2&tp=4", "sla_tpot_ms=nan", "sla_tpot_ms=inf", "sla_tpot_ms=-inf", "sla_tpot_ms=1e2",
        "sla_tpot_ms=5_0", "sla_tpot_ms=.5", "sla_tpot_ms=5.", "sla_tpot_ms=0", "sla_tpot_ms=50,5", "sla_tpot_ms=NaN",
        "weights=fp16", "weights=FP8", "weights=fp8%20", "overlap=true", "overlap=1", "overlap=ON", "isl=1000000000000",
        "unknown=1", "TP=4", "tp%00=4", "v=0", "v=2", "v=", "v=one", "v=1.0", "preset=nothing", "preset=", "model=nothing",
        "gpu=h100", "gpu=H100-SXM", "prefill=disaggregated&prefill_gpu=h100", "provider=Nobody", "c=A%20B", "x=1abc",
        "x=", "model=custom", "profile=custom", "prefill_tp=2", "accept=0.9", "lang=de", "at_batch=None", "=4", "&=",
    ],
)  # fmt: skip
def test_refused_with_parameter_value_and_what_is_allowed(link: str) -> None:
    for found in faults(link):
        assert found.field
        assert found.value
        assert len(found.value) <= 80
        assert found.allowed
        assert str(found).isprintable()


def test_all_faults_of_a_link_are_reported() -> None:
    found = faults("tp=banana&isl=0&gpu=h100&colour=red")
    assert [item.field for item in found] == ["tp", "isl", "colour", "gpu"]


def test_a_refused_value_raises_no_contradiction_of_its_own() -> None:
    assert fault("prefill=somewhere&prefill_tp=2").field == "prefill"


def test_repeated_names_every_value() -> None:
    assert str(fault("tp=2&tp=8")) == "tp = 2, 8: given 2 times: must be given once, or left out"


def test_a_newer_link_says_so_and_nothing_else() -> None:
    found = fault("v=2&wonder=1&tp=banana")
    assert found.field == "v"
    assert "newer" in found.allowed


def test_near_ids_are_offered() -> None:
    assert "did you mean h100-sxm?" in fault("gpu=h100-smx").allowed
    assert "did you mean llama-3.1-70b?" in fault("model=llama3.1-70b").allowed
    assert "did you mean llama70b-fp8-c?" in fault("preset=llama70b-fp8c").allowed


def test_a_preset_is_expanded_and_explicit_parameters_override_it() -> None:
    start = load_preset("llama70b-fp8-c")
    assert from_link("preset=llama70b-fp8-c") == start
    assert from_link("tp=2&preset=llama70b-fp8-c") == start.with_(tp=2)
    assert "preset" not in to_link(from_link("preset=llama70b-fp8-c"))


def test_too_long_and_too_many_are_refused() -> None:
    assert fault("tp=" + "1" * MAX_QUERY).field == "link"
    assert fault("&".join(f"a{i}=1" for i in range(1001))).field == "link"


def test_pairs_hold_every_occurrence() -> None:
    assert from_pairs({"tp": ["4"]}) == Scenario(tp=4)
    with pytest.raises(LinkError):
        from_pairs({"tp": []})


def test_an_exported_link_carries_price_and_catalogue_version() -> None:
    scenario = pinned(Scenario())
    assert scenario.price is not None
    assert scenario.c == catalogue_version()
    assert f"price={scenario.price}".rstrip("0").rstrip(".") in to_link(scenario)
    assert from_link(to_link(scenario)) == scenario


def test_a_price_that_was_asked_for_stays() -> None:
    assert pinned(Scenario(price=1.25)).price == 1.25


def test_a_scenario_argument_is_a_preset_a_link_or_a_query() -> None:
    assert scenario_from_text("llama70b-fp8-c") == load_preset("llama70b-fp8-c")
    assert scenario_from_text("?") == Scenario()
    assert scenario_from_text("https://host/?tp=4") == scenario_from_text("tp=4") == Scenario(tp=4)
    for text in ("", "llama70b", "../../etc/passwd", "\x00"):
        with pytest.raises(InputError, match="preset's id"):
            scenario_from_text(text)


def test_every_preset_loads_and_round_trips() -> None:
    assert len(preset_ids()) == 37
    for item in presets():
        assert from_link(to_link(item.scenario)) == item.scenario
        assert item.source
        assert item.date
        assert item.real is None or load_preset(item.real).profile == "measured"


def test_a_custom_model_travels_in_the_link() -> None:
    scenario = Scenario(model="custom", x=encode_custom(CONFIG))
    assert from_link(to_link(scenario)) == scenario
    assert scenario.x is not None
    assert json.loads(decode_custom(scenario.x)) == json.loads(CONFIG)
    assert custom_model(scenario.x).hidden == 512


def token(data: bytes, version: str = "1") -> str:
    return version + base64.urlsafe_b64encode(zlib.compress(data, 9)).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "x",
    [
        token(CONFIG.encode(), "2"),
        token(b" " * (DECODE_LIMIT + 1)),
        token(b"\xff\xfe"),
        token(b"not json"),
        token(b"[]"),
        token(b"[" * 60_000),
        token(b"{}"),
        token(CONFIG.encode())[:-9],
        token(CONFIG.encode()) + "AAAA",
        "1AAAA",
        "1A",
        "1%25%25",
    ],
)
def test_a_damaged_token_is_refused(x: str) -> None:
    assert fault(f"model=custom&x={x}").field == "x"


def test_a_bomb_is_not_inflated() -> None:
    assert "65,536" in fault(f"model=custom&x={token(bytes(50_000_000))}").allowed


def test_encoding_refuses_what_decoding_would() -> None:
    with pytest.raises(InputError, match="65,536"):
        encode_custom(json.dumps({**json.loads(CONFIG), "_name_or_path": "a" * DECODE_LIMIT}))
    with pytest.raises(ModelConfigError):
        encode_custom("not json")


# --- parameters of a page ---------------------------------------------------------------------------


def test_a_pages_own_parameters_are_no_scenario_fields() -> None:
    own = [name for names in PAGE_PARAMETERS.values() for name in names]
    assert not set(own) & {*SCENARIO_FIELDS, "preset", "embed", "embed_options"}


def test_what_belongs_to_a_page_is_left_to_it_and_to_no_other() -> None:
    pairs = {"tp": ["4"], "plans": ["a", "b"], "tpp": ["1"]}
    found = address(pairs, "compare")
    assert (found.scenario, found.own) == ({"tp": ["4"], "tpp": ["1"]}, {"plans": ["a", "b"]})
    for page in ("", "fleet", "model", "nowhere"):
        assert (address(pairs, page).scenario, address(pairs, page).own) == (pairs, {})


def test_a_pages_own_parameter_is_given_once() -> None:
    assert page_values({"tp": ["4"], "plans": ["a"]}, "compare") == {"plans": "a"}
    assert page_values({"plans": [""]}, "compare") == {"plans": ""}
    assert page_values({"plans": ["a"]}, "fleet") == {}
    for values in (["a", "b"], []):
        with pytest.raises(LinkError) as caught:
            page_values({"plans": values}, "compare")
        assert [each.field for each in caught.value.faults] == ["plans"]


def test_a_scenarios_link_knows_no_page() -> None:
    assert fault("tp=4&plans=tp%3D2").field == "plans"
