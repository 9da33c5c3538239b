"""Model configurations from the Hugging Face hub, for models that the knowledge base does not hold."""

from __future__ import annotations

from knowledge import models


def attach() -> None:
    """Let unknown hub ids be read from the hub (or from what was read before); offline they raise with a hint."""
    from integrations.hub.lookup import lookup

    models.set_elsewhere(lookup)
