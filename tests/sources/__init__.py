"""The cases of the source articles: the planner asked as they ask it, and the document that compares the two."""
