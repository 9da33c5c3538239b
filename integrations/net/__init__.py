"""Reaching the outside world: one guarded way of asking, shared by price sources and the model hub."""

from integrations.net.session import NotModified, Policy, Session, SourceError

__all__ = ["NotModified", "Policy", "Session", "SourceError"]
