"""A provider's errors in our words: what failed, whether to try again and when, and whether it can have cost anything.

litellm gives every provider's error a class of the OpenAI client's names and, where there was one, the HTTP status.
Their texts are never passed on: they echo keys.
"""

from __future__ import annotations

import logging
import random
import time
from email.utils import parsedate_to_datetime

from advisor.llm.protocol import ModelFailed

log = logging.getLogger("advisor")
RETRY_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
BACKOFF_SECONDS = (0.5, 8.0)


def judge(name: str, error: Exception, attempt: int) -> tuple[ModelFailed, float | None]:
    """Our word for a provider's error, and the seconds to wait before another try; None: do not try again."""
    status, kind = getattr(error, "status_code", None), type(error).__name__
    log.info("%s: %s %s", name, kind, status)  # never the text: providers echo keys in it
    if kind == "ContentPolicyViolationError":
        return ModelFailed("refused", f"{name} refuses this question."), None
    if "LLM Provider NOT provided" in str(error):
        return ModelFailed("misconfigured", f"{name} names no provider that litellm knows."), None
    keyless = "Missing credentials" in str(error)  # what the OpenAI client says, as a server error of its own
    if keyless or status in (401, 403) or kind in ("AuthenticationError", "PermissionDeniedError"):
        return ModelFailed("misconfigured", f"{name} does not accept the key."), None
    if status == 404 or kind == "NotFoundError":
        return ModelFailed("misconfigured", f"{name} is not offered there."), None
    connection = isinstance(error, (OSError, TimeoutError)) or kind in (
        "APIConnectionError", "Timeout", "APITimeoutError", "RemoteProtocolError", "ReadError", "ReadTimeout",
        "MidStreamFallbackError",
    )  # fmt: skip
    code = "rate_limited" if status == 429 else "timeout" if "Timeout" in kind else "unavailable"
    if status in RETRY_STATUS or connection:
        return ModelFailed(code, f"{name} is not available."), _pause(error, attempt)
    if isinstance(status, int) and 400 <= status < 500:
        return ModelFailed("bad_reply", f"{name} does not accept the request."), None
    return ModelFailed("unavailable", f"{name} failed."), None


def was_refused(error: Exception) -> bool:
    """Whether the provider turned the request down or was not reached, so that there is nothing to bill."""
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < 10:
        causes.append(cause)
    if any(isinstance(cause, ConnectionRefusedError) or type(cause).__name__ == "ConnectError" for cause in causes):
        return True
    # litellm makes up a response where there was none; those of the HTTP library and the OpenAI client are real.
    real = [cause for cause in causes if type(cause).__module__.partition(".")[0] in ("httpx", "openai")]
    return any(getattr(getattr(cause, "response", None), "status_code", 0) >= 400 for cause in real)


def is_overflow(error: Exception) -> bool:
    """Whether litellm says that the conversation was longer than the model reads, so that a shorter one may pass."""
    return type(error).__name__ == "ContextWindowExceededError"


def _pause(error: Exception, attempt: int) -> float:
    """Retry-After where the provider gives one, else full jitter over a growing span."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    told = _seconds(str(headers.get("retry-after", "")))
    if told is not None:
        return told
    shortest, longest = BACKOFF_SECONDS
    return random.uniform(shortest, min(longest, shortest * 2.0 ** (attempt + 1)))


def _seconds(retry_after: str) -> float | None:
    """The header's seconds or date (RFC 9110, 10.2.3) as seconds from now; None when it is neither or lies behind."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return seconds if seconds > 0 else None
