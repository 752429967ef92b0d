"""Names of models that cannot be sized: refused with the key of their configuration."""

from __future__ import annotations

import pytest

from planner.case_words import CaseError, model_of
from planner.catalog.hf_keys import REFUSED
from planner.catalog.models import find_model
from planner.catalog.refused_models import refusal, refused_models


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("MiniMaxAI/MiniMax-M3", "sparse_attention_config"),
        ("gemma-4-31B-it", "global_head_dim"),
        ("cyankiwi/gemma-4-31B-it-AWQ-4bit", "global_head_dim"),
        ("deepseek-ai/DeepSeek-V4-Flash-0731", "compress_ratios"),
        ("MiMo-V2.5-NVFP4", "hybrid_layer_pattern"),
    ],
)
def test_a_known_structure_that_is_not_supported_names_its_key(text: str, key: str) -> None:
    with pytest.raises(CaseError) as refused:
        model_of(text)
    assert str(refused.value) == f"model {text} is not supported: {key}: {REFUSED[key]}"


@pytest.mark.parametrize("text", ["", "nobody/knows", "MiniMax-M2.9", "gemma-5", "x" * 10_000])
def test_an_unknown_name_is_not_in_the_catalogue(text: str) -> None:
    assert refusal(text) is None
    with pytest.raises(CaseError, match="is not in the catalogue"):
        model_of(text)


def test_a_model_of_the_catalogue_is_never_refused_by_name() -> None:
    assert model_of("MiniMax-M2").id == "minimax-m2"
    assert model_of("DeepSeek-Math-V2").id == "deepseek-v3.2"
    for each in refused_models().model:
        assert all(find_model(stem) is None for stem in each.stems)
