"""Opening a model by its name: ``planner`` is built in, anything else goes to litellm."""

from __future__ import annotations

from importlib import import_module

from advisor.llm.protocol import Model, ModelFailed
from advisor.settings import Settings

PLANNER = "planner"


def open_model(name: str, settings: Settings) -> Model:
    """The model of this name. Raises ModelFailed when it cannot be had."""
    # Each model is imported only when asked for: the planner must not pay for litellm, nor litellm for the grammar.
    try:
        if name == PLANNER:
            planner: Model = import_module("advisor.llm.planner").Planner()
            return planner
        if settings.offline:
            raise ModelFailed("misconfigured", "ADVISOR_OFFLINE is set, so no provider is called.")
        provider: Model = import_module("advisor.llm.client").LitellmModel(name, settings)
        return provider
    except ModuleNotFoundError as error:
        raise ModelFailed("missing", f"{error.name} is not installed.") from None


def ladder(asked: str | None, settings: Settings) -> tuple[str, ...]:
    """The models to try in order: the one asked for, the fallbacks, and last the planner, which needs no network."""
    return tuple(dict.fromkeys([asked or settings.model, *settings.fallback_models, PLANNER]))
