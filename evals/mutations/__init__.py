"""Seeded faults: each turns the gate red, or the gate is no gate; ``tests/evals/test_mutations.py`` proves it."""

from evals.mutations.faults import MUTATIONS
from evals.mutations.prove import Mutation, clear_caches, seeded, verdicts

__all__ = ["MUTATIONS", "Mutation", "clear_caches", "seeded", "verdicts"]
