"""Traffic on a plan, request by request: queues, tails, and goodput at the percentile that was promised."""
