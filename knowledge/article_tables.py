"""Articles, checked claims and their full-text index: the part of the build that ``knowledge.search`` reads.

Articles are Markdown files with a YAML head (id, title, summary, synonyms, asked, sources, as_of): ``synonyms`` are
what the subject is called, ``asked`` are questions and complaints that it answers, one a line, in the words of people
who do not know its name. Claims and synonyms are YAML. FTS5 with Porter stemming indexes the words of both, so
"sharding" finds "sharded"; the topic model ranks articles.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from knowledge import topic_model
from knowledge.words import STOP, WORD, stem

DATA = Path(__file__).parent / "data"
VERDICTS = ("right", "wrong", "misleading", "depends")
_TOKENIZER = "porter unicode61"


def add_articles(db: Any) -> None:
    """Write the tables articles, claims, synonyms and the two FTS5 indexes into ``db``."""
    articles = [read_article(file) for file in sorted((DATA / "articles").glob("*.md"))]
    for article in articles:
        db["articles"].insert(
            {
                **article,
                "synonyms": "; ".join(map(str, article["synonyms"])),
                "asked": "\n".join(article["asked"]),
                "sources": json.dumps(article["sources"]),
                "stems": _stems(" ".join(map(str, _said(article)))),
                "blocks": json.dumps([(block, _stems(block)) for block in _blocks(article["body"])]),
            },
            pk="id",
        )
    db["articles"].enable_fts(["title", "summary", "synonyms", "asked", "body"], tokenize=_TOKENIZER)
    claims = read_yaml("claims")
    for number, claim in enumerate(claims):
        row = {key: claim[key] for key in ("id", "topic", "article", "claim", "figures", "verdict", "sum", "as_of")}
        db["claims"].insert(
            {
                **row,
                "sources": json.dumps(claim["sources"]),
                "first_verdict": claim.get("first"),
                "place": number,
                "proof": json.dumps(claim["check"]) if "check" in claim else None,
            },
            pk="id",
        )
    db["claims"].enable_fts(["claim", "figures", "sum"], tokenize=_TOKENIZER)
    synonyms = [{"said": said, "meant": " ".join(meant)} for said, meant in read_yaml("synonyms").items()]
    db["synonyms"].insert_all(synonyms, pk="said")
    off_topic = [line for lines in read_yaml("off_topic").values() for line in lines]
    topic_model.add_topics(db, articles, [(row["said"], row["meant"]) for row in synonyms], off_topic)
    db.execute("create virtual table articles_words using fts5vocab(articles_fts, row)")
    db.execute("create virtual table claims_words using fts5vocab(claims_fts, row)")


def _said(article: dict[str, Any]) -> tuple[Any, ...]:
    return (article["title"], article["summary"], *article["synonyms"], *article["asked"], article["body"])


def _blocks(body: str) -> list[str]:
    """The paragraphs, lists and tables of a body."""
    return [block.strip() for block in re.split(r"\n\s*\n", body) if block.strip()]


def _stems(text: str) -> str:
    """The stems of a text's content words; taken here, since a thousand words take 20 ms."""
    said = WORD.findall(text.casefold().replace("'", ""))
    return " ".join(sorted({stem(word) for word in said if word not in STOP}))


def read_yaml(name: str) -> Any:
    """What ``data/{name}.yaml`` holds. Reads the disk each time; raises FileNotFoundError or YAMLError for a broken
    checkout.
    """
    return yaml.safe_load((DATA / f"{name}.yaml").read_text(encoding="utf-8"))


def read_article(file: Path) -> dict[str, Any]:
    """One article: the fields of its head, ``asked`` as a list, and ``body``."""
    parts = re.split(r"^---\n", file.read_text(encoding="utf-8"), maxsplit=2, flags=re.MULTILINE)
    head: dict[str, Any] = yaml.safe_load(parts[1])
    return {**head, "asked": head["asked"].splitlines(), "body": parts[2].strip()}
