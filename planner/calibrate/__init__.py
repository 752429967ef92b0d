"""Constants from measurements: kernel laws, what serving adds to them, and a user's own benchmark."""
