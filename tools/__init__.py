"""Pure deterministic functions: the formulas, and the registry that declares each one as a tool."""
