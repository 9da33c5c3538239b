"""The web page at ``/``: a shell, ES modules and a style sheet of our own, charts vendored; nothing from elsewhere."""
