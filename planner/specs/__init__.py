"""What exists (models, accelerators, engines, prices) and what is asked (scenario): plain frozen objects."""
