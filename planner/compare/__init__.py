"""Two to four plans side by side: what differs, by how much, and a link that holds all of them."""

from planner.compare.comparison import Comparison, comparison
from planner.compare.document import comparison_csv, comparison_json
from planner.compare.link import comparison_from, comparison_link

__all__ = ["Comparison", "comparison", "comparison_csv", "comparison_from", "comparison_json", "comparison_link"]
