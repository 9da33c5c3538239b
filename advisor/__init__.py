"""A question in, a grounded answer out: the turn loop, the model door, the number check, rendering, the CLI."""
