"""What exists: presets read from `presets/`, and model configurations that a person brings."""
