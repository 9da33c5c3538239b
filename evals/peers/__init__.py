"""What others that install from the package index predict for the same measured rows: ``python -m evals.peers``.

Their packages live in an environment of their own that the command makes; ``adapters.py`` runs there and imports
nothing of ours, and no code of theirs is in here. Each is asked through its documented interface with everything that
it can take; what it cannot express (a method, a parallelism, a vocabulary) is left out as that peer leaves it out.
"""
