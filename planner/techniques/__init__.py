"""Techniques on and off for one scenario: what each gains and costs, on the same model, devices and SLA.

Every row is a variant of the scenario priced through the one path. A variant that is refused, or whose effect is not
modelled, is shown with its reason and without numbers that would look like an effect of it.
"""

from planner.techniques.best import Finding, best_changes
from planner.techniques.rows import Figures, Technique
from planner.techniques.table import techniques

__all__ = ["Figures", "Finding", "Technique", "best_changes", "techniques"]
