"""Pasted training configurations of the usual frameworks, read into workload arguments."""
