"""Work of a forward pass, its memory, and the one law that turns work into seconds."""
