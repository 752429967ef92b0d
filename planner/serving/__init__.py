"""From seconds to a service: TPOT over batch, TTFT, goodput and dollars."""
