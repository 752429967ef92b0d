"""Constants from measurements: every fit that the presets hold, made again by one command."""
