"""A calibration in a link: what it holds, what it may hold, and that nothing else is believed."""

from __future__ import annotations

import base64
import json
import random
import zlib
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from planner import from_csv, from_link, to_csv, to_link
from planner.calibrate.correction import calibrate
from planner.catalog.calibration import contents, correction_in, encode_calibration
from planner.catalog.custom import custom_model, encode_custom
from planner.catalog.packed import DECODE_LIMIT
from planner.errors import InputError, LinkError
from planner.logs.readings import Point
from planner.setting import resolve
from planner.single import plan_of
from planner.specs.correction import Correction, Subject, Traffic
from planner.specs.scenario import Scenario
from planner.variants import outcome

CONFIG = json.dumps(
    {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "torch_dtype": "bfloat16",
    }
)
MADE = Correction(
    Subject("llama-3.1-8b", "h100-sxm", "vllm", "bf16", "bf16"), 1.25, 1.5e-3, 0.8, 1.1, 3, 0.2, 0.01, (0.9, 1.1)
)
RECORD: dict[str, Any] = {
    "model": "llama-3.1-8b", "gpu": "h100-sxm", "engine": "vllm", "weights": "bf16", "kv": "bf16",
    "tp": 1, "pp": 1, "dp": 1, "ep": 1, "scale": 1.25, "host_step_ms": 1.5, "interference": 0.8, "ttft": 1.1,
    "points": 3, "before": 0.2, "after": 0.01, "band_low": 0.9, "band_high": 1.1,
}  # fmt: skip


def token(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return "1" + base64.urlsafe_b64encode(zlib.compress(data, 9)).rstrip(b"=").decode()


def written(**changes: Any) -> str:
    """The token of a calibration with some of its values changed; None leaves one out."""
    found = {key: value for key, value in {**RECORD, **changes}.items() if value is not None}
    return token(json.dumps({"calibration": found}))


def refusal(query: str) -> str:
    with pytest.raises(LinkError) as caught:
        from_link(query)
    assert [each.field for each in caught.value.faults] == ["x"]
    return str(caught.value)


def test_a_correction_reads_back() -> None:
    assert correction_in(encode_calibration(MADE)) == MADE
    assert correction_in(written()) == MADE


def test_it_is_written_as_documented() -> None:
    found = json.loads(zlib.decompress(base64.urlsafe_b64decode(encode_calibration(MADE)[1:] + "==")))
    assert found == {"calibration": RECORD}


def test_drafts_are_written_where_there_were_any_and_older_tokens_had_none() -> None:
    drafted = replace(MADE, subject=replace(MADE.subject, spec=True))
    assert correction_in(encode_calibration(drafted)) == drafted
    assert correction_in(written(spec=True)) == drafted
    assert not correction_in(written()).subject.spec


def test_a_model_of_ones_own_travels_with_its_calibration() -> None:
    own = Scenario(model="custom", x=encode_custom(CONFIG))
    tpot = outcome(own.with_(at_batch=8)).tpot_ms
    assert tpot is not None
    found = calibrate(own, [Point(concurrency=8, tpot_ms=2.0 * tpot)])
    assert (found.model, found.profile) == ("custom", "custom")
    assert found.x is not None
    assert custom_model(found.x).hidden == 4096
    assert outcome(found.with_(at_batch=8)).tpot_ms == pytest.approx(2.0 * tpot, rel=1e-4)
    assert from_link(to_link(found)) == found
    assert from_csv(to_csv([plan_of(found)])) == (found,)
    plain = found.with_(profile="measured")
    assert outcome(plain.with_(at_batch=8)).tpot_ms == tpot


def test_a_token_of_a_model_alone_means_what_it_meant() -> None:
    x = encode_custom(CONFIG)
    assert contents(x).correction is None
    assert json.loads(str(contents(x).model)) == json.loads(CONFIG)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("model=custom", "model's token"),
        (f"x={written()}", "allowed only with"),
        (f"profile=textbook&x={written()}", "allowed only with"),
        (f"profile=custom&x={encode_custom(CONFIG)}", "must hold a calibration"),
        (f"model=custom&profile=custom&x={encode_custom(CONFIG)}", "must hold a calibration"),
        (f"model=custom&x={written()}", "must hold a model"),
    ],
)
def test_each_choice_needs_its_part_of_the_token(query: str, said: str) -> None:
    assert said in refusal(query)


def test_a_calibrated_profile_without_a_token_is_refused() -> None:
    with pytest.raises(LinkError, match="needs a calibration's token"):
        from_link("profile=custom")


def test_a_scenario_made_without_a_link_is_refused_where_it_is_resolved() -> None:
    with pytest.raises(InputError, match="must hold a calibration"):
        resolve(Scenario(profile="custom", x=encode_custom(CONFIG)))
    with pytest.raises(InputError, match="must hold a model"):
        resolve(Scenario(model="custom", x=written()))


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": 0.19}, {"scale": 5.01}, {"scale": float("nan")}, {"scale": float("inf")}, {"scale": "1"},
        {"scale": True}, {"scale": None}, {"scale": [1.0]}, {"scale": -1.0}, {"scale": 10**400},
        {"host_step_ms": -0.001}, {"host_step_ms": 1e9}, {"host_step_ms": float("-inf")},
        {"interference": 0.0}, {"interference": 10.1}, {"ttft": 0.0}, {"ttft": 6.0},
        {"points": 0}, {"points": 2.5}, {"points": 1_001}, {"before": -0.1}, {"before": 10.1}, {"after": float("nan")},
        {"after": 11}, {"sure": 0.99}, {"sure": 0.01}, {"sure": 1.2}, {"sure": float("nan")}, {"isl": 0}, {"osl": 1.5},
        {"prefill": "elsewhere"}, {"prefix": 1.1}, {"prefix": -0.1}, {"isl": "1024"},
        {"band_low": 0.0}, {"band_low": 1.1}, {"band_high": 0.9}, {"band_high": 1e9},
        {"model": "<script>"}, {"model": "=cmd()"}, {"model": "../../etc/passwd"}, {"model": ""}, {"model": "a" * 99},
        {"gpu": None}, {"gpu": "H100"}, {"engine": "ollama"}, {"weights": "fp4"}, {"kv": "fp16"},
        {"tp": 0}, {"tp": 5000}, {"tp": "4"}, {"note": "<b>"}, {"source": "x"}, {"spec": 1}, {"spec": "true"},
    ],
)  # fmt: skip
def test_every_number_is_bounded_and_nothing_else_is_read(changes: dict[str, Any]) -> None:
    said = refusal(f"profile=custom&x={written(**changes)}")
    assert "<script>" not in said
    assert len(said) < 500


TRAFFIC: dict[str, Any] = {"isl": 1024, "osl": 256, "prefill": "colocated", "prefix": 0.25}


def test_what_was_sent_travels() -> None:
    made = replace(MADE, traffic=Traffic(1024, 256, "colocated", 0.25))
    assert correction_in(encode_calibration(made)) == correction_in(written(**TRAFFIC)) == made
    assert correction_in(written(**{**TRAFFIC, "osl": None})).traffic is None


@pytest.mark.parametrize("band", [(1.0, 1.0), (0.99, 1.001), (None, None)])
@pytest.mark.parametrize(("points", "least", "sure"), [(1, (0.904, 1.117), 1.059), (1_000, (0.961, 1.051), 1.025)])
def test_a_link_cannot_claim_a_narrower_band_than_public_curves_have(
    band: tuple[float | None, float | None], points: int, least: tuple[float, float], sure: float
) -> None:
    """Bands of presets/profiles/calibrated.toml."""
    found = correction_in(written(points=points, band_low=band[0], band_high=band[1], sure=1.0))
    assert (found.band, found.sure) == (least, sure)


def test_the_figures_of_a_link_are_its_own_claim() -> None:
    scenario = from_link(f"model=llama-3.1-8b&profile=custom&x={written(before=0.9, after=0.0, points=1_000)}")
    notes = [note.text for note in plan_of(scenario).notes if note.code == "calibrated"]
    assert len(notes) == 1
    assert "as the link states" in notes[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"calibration": 1}', '{"calibration": null}', '{"calibration": []}', '{"calibration": {}}',
        json.dumps({"calibration": RECORD, "model": "llama"}), json.dumps({"calibration": RECORD, "model": [1]}),
        json.dumps({"calibration": RECORD, "more": 1}), json.dumps([{"calibration": RECORD}]),
        json.dumps({"calibration": RECORD})[:-9], '{"calibration":' + "[" * 30_000, '{"calibration":' + '{"a":' * 5_000,
        json.dumps({"calibration": RECORD})[:-1] + ', "calibration": {}}',
        json.dumps({"calibration": RECORD}).replace('"scale": 1.25', '"scale": 1.25, "scale": 1.5'),
        '{"calibration": {"scale": ' + "9" * 5_000 + "}}", '"calibration"', "", "\x00", "calibration",
    ],
)  # fmt: skip
def test_what_is_no_calibration_is_refused_in_a_sentence(text: str) -> None:
    assert len(refusal(f"profile=custom&x={token(text)}")) < 500


def test_a_bomb_is_not_inflated() -> None:
    assert "65,536" in refusal(f"profile=custom&x={token(bytes(40_000_000))}")


def test_what_is_too_long_is_not_packed() -> None:
    with pytest.raises(InputError, match="65,536"):
        encode_calibration(MADE, json.dumps({"a": "b" * DECODE_LIMIT}))
    with pytest.raises(InputError, match="scale"):
        encode_calibration(replace(MADE, scale=50.0))


def test_ten_thousand_damaged_tokens_are_read_or_refused() -> None:
    dice = random.Random(5)
    whole = json.dumps({"calibration": RECORD, "model": json.loads(CONFIG)})
    for _ in range(10_000):
        text = list(whole)
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(text))
            text[at] = dice.choice(['"', "{", "}", "[", ",", "-", "9", "e", "\\", "é", "\ud800", ""])
        x = token("".join(text).encode("utf-8", "surrogatepass"))
        with suppress(LinkError):
            scenario = from_link(f"model=custom&profile=custom&x={x}")
            assert 0.2 <= correction_in(str(scenario.x)).scale <= 5.0
