"""Optimise: what would be cheapest, by how much, and what would change the answer?"""

from __future__ import annotations

from planner.ui import optimise_page

optimise_page.page()
