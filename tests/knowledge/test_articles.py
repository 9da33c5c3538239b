"""The articles: whole, dated, sourced, short, and covering every topic of the checked claims."""

import re
from datetime import date

import pytest
import yaml

from knowledge.article_tables import DATA, VERDICTS, read_article, read_yaml

ARTICLES = {file.stem: read_article(file) for file in sorted((DATA / "articles").glob("*.md"))}
CLAIMS = read_yaml("claims")
SOURCES = {row["id"]: row for name in ("sources", "sources_articles") for row in read_yaml(name)}


@pytest.mark.parametrize("name", ARTICLES)
def test_an_article_has_its_head_its_sources_and_a_readable_length(name):
    article = ARTICLES[name]
    assert set(article) == {"id", "title", "summary", "synonyms", "asked", "sources", "as_of", "body"}
    assert article["id"] == name
    assert date(2026, 1, 1) <= date.fromisoformat(article["as_of"]) <= date.today()  # noqa: DTZ011
    assert article["sources"]
    assert set(article["sources"]) <= set(SOURCES)
    assert 120 <= len(article["body"].split()) <= 430
    assert 12 <= len(article["summary"].split()) <= 70
    assert len(article["synonyms"]) >= 8
    # Questions and complaints in the words of people who do not know its name: what the search learns from.
    assert len(set(article["asked"])) == len(article["asked"]) >= 24


_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e\d+)?"
_UNIT = r"(?: ?(?:(?!and|to|of|or|with|on|for|is|at)[A-Za-z%]+(?:/[A-Za-z]+)?))?"
_CHAIN = re.compile(
    rf"(?<![×÷/+−-] )(?<![\d.,(e])(?P<left>{_NUMBER}{_UNIT}(?: ?[×÷/] ?{_NUMBER}{_UNIT})+) = "
    rf"(?:about |nearly )?(?P<right>{_NUMBER})"
)
_WORDS = re.compile(r"(?<![\d.])[A-Za-z%]+(?:/[A-Za-z]+)?|(?<=\d)[A-DF-Za-df-z%]\w*(?:/[A-Za-z]+)?")


def test_every_product_and_quotient_printed_in_articles_and_claims_is_right():
    # "8 × 700 W = 5.6 kW": the left side is recomputed; units are words, so the right side may be scaled by a prefix,
    # per cent, minutes or hours. Rounding allows 3 %.
    scales = (1, 1e-3, 1e-2, 1e2, 1e3, 1e6, 1e9, 1e12, 60, 3600)
    texts = {name: f"{article['summary']}\n{article['body']}" for name, article in ARTICLES.items()}
    texts |= {claim["id"]: claim["sum"] for claim in CLAIMS}
    seen = 0
    for name, text in texts.items():
        for match in _CHAIN.finditer(text):
            terms = re.findall(rf"{_NUMBER}|[×÷/]", _WORDS.sub("", match["left"]))
            value = float(terms[0].replace(",", ""))
            for sign, term in zip(terms[1::2], terms[2::2], strict=True):
                factor = float(term.replace(",", ""))
                value = value * factor if sign == "×" else value / factor
            stated = float(match["right"].replace(",", ""))
            assert any(value == pytest.approx(stated * scale, rel=0.03) for scale in scales), (name, match[0])
            seen += 1
    assert seen >= 45


def test_titles_and_synonyms_do_not_collide():
    titles = [article["title"].casefold() for article in ARTICLES.values()]
    assert len(set(titles)) == len(titles) >= 45


def test_every_claim_is_whole_and_points_at_an_article_that_exists():
    ids = [claim["id"] for claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert sum(id_.startswith("S") for id_ in ids) == 108  # those of the four guides, each checked
    for claim in CLAIMS:
        assert claim["verdict"] in VERDICTS, claim["id"]
        assert claim["article"] in ARTICLES, claim["id"]
        assert claim["sources"], claim["id"]
        assert set(claim["sources"]) <= set(SOURCES), claim["id"]
        assert len(claim["sum"].split()) >= 5, claim["id"]
        date.fromisoformat(claim["as_of"])


def test_sources_of_articles_are_whole_and_none_is_listed_twice():
    rows = [*read_yaml("sources"), *read_yaml("sources_articles")]
    assert len({row["id"] for row in rows}) == len(rows)
    for row in read_yaml("sources_articles"):
        assert set(row) == {"id", "title", "locator", "licence", "as_of"}
        assert date.fromisoformat(row["as_of"])


def test_no_article_names_a_path_or_port_of_a_machine():
    for file in [*(DATA / "articles").glob("*.md"), DATA / "claims.yaml", DATA / "sources_articles.yaml"]:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"(^|[\s(\"'])/(home|root|tmp|usr|var|mnt|opt)/", text)
        assert "127.0.0.1:" not in text
    yaml.safe_load((DATA / "synonyms.yaml").read_text(encoding="utf-8"))
