"""Traffic: does it hold at P99? Requests simulated one by one on the plan: queues, distributions, the knee, failures."""

from __future__ import annotations

from planner.ui import traffic_page

traffic_page.page()
