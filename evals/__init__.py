"""Suites of questions with pinned numbers, published measurements, graders and the report."""
