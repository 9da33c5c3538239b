"""From what was pasted to plain text: Slack mark-up, secrets, logs and tracebacks apart from the asker's own words."""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

from advisor.llm.planner import grammar

MAX_PROSE = 6_000  # characters of the asker's own words that are read; a longer message is cut in the middle
MAX_LOG = 20_000

_SPACED = str.maketrans({"\x00": " ", "\uff0c": ", ", "\u3001": ", "})  # a full-width comma parts no thousands
_SECRETS = re.compile(
    r"""(?x)
    \bhf_[A-Za-z0-9]{8,} | \bsk-[A-Za-z0-9_\-]{8,} | \bxox[abeoprs]-[A-Za-z0-9\-]{6,} | \bxapp-[A-Za-z0-9\-]{6,}
    | \bgh[opsru]_[A-Za-z0-9]{8,} | \bgithub_pat_[A-Za-z0-9_]{8,} | \bglpat-[A-Za-z0-9_\-]{8,}
    | \bA[KS]IA[A-Z0-9]{8,} | \bAIza[A-Za-z0-9_\-]{16,} | \bya29\.[A-Za-z0-9_\-]{8,} | \bnvapi-[A-Za-z0-9_\-]{8,}
    | \br8_[A-Za-z0-9]{8,} | \bwandb_v1_[A-Za-z0-9]{8,} | \bpypi-[A-Za-z0-9_\-]{16,}
    | \beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?
    | -----BEGIN[ A-Z]*PRIVATE[ ]KEY-----[\s\S]{0,4000}?(?:-----END[ A-Z]*-----|$)
    | (?i:\b(?:bearer|basic)[ ]+)[A-Za-z0-9+/._\-]{12,}=*
    | (?i:\b(?:api[_-]?key|apikey|access[_-]?key|auth[_-]?token|access[_-]?token|secret(?:[_-]?(?:access[_-]?)?key)?
        |client[_-]?secret|passw(?:or)?d|passwd|pwd|hf[_-]?token|wandb[_-]?(?:api[_-]?)?key|token)
        [ ]*["']?[ ]*[:=][ ]*["']?)[^\s"'`,;]{6,}
    | (?i:\b[a-z][a-z0-9+]*://)[^\s/:@]+:[^\s/@]+(?=@)
    """
)
_MENTION = re.compile(r"<(?:@[A-Z0-9]+|![a-z^A-Z0-9]+|#[A-Z0-9]+)(?:\|[^>]{0,80})?>")
_LINK = re.compile(r"<(https?://[^|>\s]+|mailto:[^|>\s]+)(?:\|([^>]{0,200}))?>")
_URL = re.compile(r"https?://\S+")
_HUB = re.compile(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/(?!datasets/|spaces/|docs/|blog/)([\w.\-]+/[\w.\-]+)\S*"
)
_EMOJI = re.compile(r"(?<![\w:]):[a-z][a-z0-9_+\-]{1,40}:(?!\w)")
_AT = re.compile(r"(?<![\w.])@[A-Za-z][\w.\-]{1,30}")
_FENCE = re.compile(r"```(?:[a-z]+\n)?([\s\S]*?)(?:```|$)")
_LOG_LINE = re.compile(
    r"""(?xi)
    ^\s*(?:
      traceback[ ]\(most[ ]recent | file[ ]"[^"]*",[ ]line | \.\.\.\s*$ | during[ ]handling[ ]of
      | \[(?:default|rank|node)\s?\d+\] | (?:default|rank|node)\s?\d+:\s
      | \[\d{4}-\d\d-\d\d | \d{4}-\d\d-\d\d[ T]\d\d:\d\d
      | [WEIF]\d{4}\s\d\d:\d\d | (?:srun|slurmstepd|sbatch):\s
      | (?:[\w.]*\.)?\w*(?:Error|Exception|Warning|Interrupt)\b\s*[:(]
      | torch\.(?:cuda\.)?OutOfMemoryError | CUDA[ ]out[ ]of[ ]memory | CUDA[ ]kernel[ ]errors
      | NCCL[ ](?:INFO|WARN) | [\w\-]+:\d+:\d+[ ]\[\d\][ ]NCCL
      | [a-z_]+\.py[":]\d* | (?:trainer|model|self|loss|out|return|outputs?|logits)\.?\w*\s*[=(.].*[)\]]\s*$
    )"""
)
_HEADS = re.compile(r"(?im)^[ \t]{0,20}(?:system|assistant|user|human)[ \t]{0,20}:\s{0,20}")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The asker's words (original case and lower-cased), what was pasted, and what was taken out."""

    prose: str
    lower: str
    log: str
    secrets: int
    links: int
    language: str
    cut: bool


def _log_cues() -> re.Pattern[str]:
    return grammar.named("cues", "logs")


def redact(text: str) -> tuple[str, int]:
    """``text`` with tokens, keys and passwords replaced, and how many there were."""
    return _SECRETS.subn("[redacted]", text)


def clean(text: str) -> Cleaned:
    """Split a message into the asker's words and what was pasted, without secrets. Never raises, whatever the bytes."""
    cut = len(text) > MAX_PROSE + MAX_LOG
    if cut:
        text = text[: MAX_PROSE + MAX_LOG // 2] + "\n" + text[-MAX_LOG // 2 :]
    text = unicodedata.normalize("NFKC", text.translate(_SPACED))
    text = "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)
    text, secrets = redact(text)
    text = _HUB.sub(r" \1 ", text)
    text = _MENTION.sub(" ", text)
    text, slack_links = _LINK.subn(lambda match: f" {match[2] or ''} ", text)
    text, urls = _URL.subn(" ", text)
    text = _EMOJI.sub(" ", _AT.sub(" ", html.unescape(text)))
    prose, log = _split(text)
    if len(prose) > MAX_PROSE:
        prose = prose[: MAX_PROSE // 2] + "\n" + prose[-MAX_PROSE // 2 :]
    prose = _HEADS.sub(" ", prose)
    prose = re.sub(r"(?m)^[ \t]{0,20}>+\s?", "", prose)
    prose = re.sub(r"[ \t]{2,}", " ", prose).strip()
    return Cleaned(prose, prose.lower(), log[:MAX_LOG], secrets, slack_links + urls, language(prose), cut)


def language(text: str) -> str:
    """The language written: by script, else by the commonest small words; "en" where nothing speaks for another."""
    if re.search(r"[\u3040-\u30ff]", text):
        return "ja"
    if re.search(r"[\uac00-\ud7a3]", text):
        return "ko"
    if re.search(r"[\u4e00-\u9fff]", text):
        return "zh"
    words = re.findall(r"[a-zà-ÿ']+", text.lower())
    scores = {code: sum(word in small for word in words) for code, small in grammar.data("languages").items()}
    best = max(scores, key=lambda code: scores[code])
    return best if scores[best] >= 2 and scores[best] > scores["en"] else "en"


def _split(text: str) -> tuple[str, str]:
    """(prose, log): fenced blocks that read like logs, and lines that do, go to the log."""
    log: list[str] = []

    def fence(match: re.Match[str]) -> str:
        if _log_cues().search(match[1]):
            log.append(match[1])
            return "\n"
        return "\n" + match[1] + "\n"

    text = _FENCE.sub(fence, text)
    if not _log_cues().search(text) and not _LOG_LINE.search(text):
        return text.replace("`", " "), "\n".join(log)
    prose: list[str] = []
    lines = text.split("\n")
    for line in lines:
        is_log = bool(_LOG_LINE.match(line)) or (bool(_log_cues().search(line)) and len(line) > 90)
        (log if is_log else prose).append(line)
    if log and not any(any(char.isalpha() for char in line) for line in prose):
        prose = [log[-1]]  # one long line holds both the log and what is said of it
    return "\n".join(prose).replace("`", " "), "\n".join(log)
