"""Headroom: how many requests fit, at what latency, on how many GPUs, for how many dollars a good token."""
