"""Fleets: whole replicas of plans for several classes of traffic, from the GPUs and the money that there are."""
