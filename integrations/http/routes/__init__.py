"""The routes, a file a topic."""
