"""What a user's own measurements say: read, compared with the plan, and turned into a small correction of it."""
