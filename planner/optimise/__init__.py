"""Search: which accelerator, precision and layout costs least a good token, by how much, and what would change it."""
