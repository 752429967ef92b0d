"""Colours: Okabe and Ito's, one meaning each on every chart, a lighter set in dark; ink that follows the theme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import streamlit as st

Mode = Literal["light", "dark"]


@dataclass(frozen=True)
class Palette:
    """Inks and hues of one theme; a hue means the same thing wherever it stands.

    Attributes:
        ink, link, muted, grid, paper: text, links, axis text, lines of the grid, background.
        weights, experts, kv: bytes of the model and of the cache, and the time that reading them takes.
        prompt: what reading prompts takes (activations, prefill); `machinery`: runtime and collectives; `host`: host, graphs.
        free: memory that the engine leaves alone; `promise`: the SLA.
        on_weights … on_free: ink on top of a hue.
    """

    ink: str
    link: str
    muted: str
    grid: str
    paper: str
    weights: str
    experts: str
    kv: str
    prompt: str
    machinery: str
    host: str
    free: str
    promise: str
    on_weights: str
    on_kv: str
    on_free: str


LIGHT: Final = Palette(
    ink="#0B1220", link="#005FA3", muted="#4A5565", grid="#E6EBF1", paper="#FFFFFF",
    weights="#0072B2", experts="#56B4E9", kv="#E69F00", prompt="#009E73", machinery="#CC79A7", host="#8391A2",
    free="#DCE3EB", promise="#B84300", on_weights="#FFFFFF", on_kv="#0B1220", on_free="#0B1220",
)  # fmt: skip
DARK: Final = Palette(
    ink="#E9EEF4", link="#6BB5EE", muted="#A9B5C2", grid="#26303B", paper="#0F141B",
    weights="#4FA3E3", experts="#9AD3F5", kv="#E9A820", prompt="#2BC194", machinery="#DE94BD", host="#7C8A9A",
    free="#364251", promise="#F58B45", on_weights="#0B1220", on_kv="#0B1220", on_free="#E9EEF4",
)  # fmt: skip


def mode() -> Mode:
    """The theme that the reader's browser shows."""
    return "dark" if st.context.theme.type == "dark" else "light"


def palette(shown: Mode) -> Palette:
    """The colours of a theme."""
    return DARK if shown == "dark" else LIGHT
