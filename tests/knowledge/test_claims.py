"""The verdicts on circulating claims, recomputed: where arithmetic decides, the sum is done again here."""

import ast
import operator

import pytest

from knowledge.article_tables import read_yaml

CLAIMS = read_yaml("claims")
PROVEN = [claim for claim in CLAIMS if "check" in claim]
_OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip


def evaluate(expression, names):
    """Arithmetic only: numbers, names, + - * / ** and brackets."""

    def walk(node):
        if isinstance(node, ast.BinOp):
            return _OPERATIONS[type(node.op)](walk(node.left), walk(node.right))
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name):
            return float(names[node.id])
        raise TypeError(ast.dump(node))

    return walk(ast.parse(str(expression), mode="eval").body)


@pytest.mark.parametrize("claim", PROVEN, ids=lambda claim: claim["id"])
def test_the_sum_behind_a_verdict_gives_its_result(claim):
    check = claim["check"]
    computed = evaluate(check["expr"], check.get("inputs") or {})
    assert computed == pytest.approx(float(check["result"]), rel=0.005)


@pytest.mark.parametrize("claim", PROVEN, ids=lambda claim: claim["id"])
def test_a_verdict_agrees_with_its_sum(claim):
    check = claim["check"]
    if "claimed" not in check:
        return
    low, high = check["claimed"]
    computed = evaluate(check["expr"], check.get("inputs") or {})
    inside = low * 0.98 <= computed <= high * 1.02
    if claim["verdict"] == "right":
        assert inside
    elif claim["verdict"] == "wrong":
        assert not inside


def test_enough_verdicts_are_decided_by_arithmetic():
    assert len(PROVEN) >= 55
    assert {claim["verdict"] for claim in PROVEN} == {"right", "wrong", "misleading", "depends"}


def test_every_wrong_claim_shows_the_sum_that_refutes_it():
    for claim in CLAIMS:
        if claim["verdict"] == "wrong":
            assert "claimed" in claim["check"], claim["id"]
            assert any(char.isdigit() for char in claim["sum"])


@pytest.mark.parametrize(
    ("claim_id", "verdict"),
    [
        ("S000-22", "wrong"),  # 70B full is 16 bytes a parameter, not 8
        ("S000-26", "wrong"),  # 37 hours for 154 days of work
        ("S000-28", "wrong"),  # 1B on 10B tokens on one 3090 in half a day
        ("S002-11", "wrong"),  # 7B in 80 GB beside 16 GB per billion
        ("S002-27", "wrong"),  # 88 GB for a 70B QLoRA
        ("S003-11", "wrong"),  # 20-30 % for gradients and states
        ("S000-25", "right"),  # the formula itself
        ("S002-08", "right"),  # 8 bytes of Adam moments
        ("S000-24", "right"),  # 400 Gb/s is 50 GB/s
        ("S002-10", "misleading"),  # 0.5 GB per billion
        ("S002-20", "misleading"),  # fp8 doubles
        ("S003-08", "misleading"),  # mixed precision halves memory
    ],
)
def test_known_traps_have_the_verdict_that_hand_arithmetic_gives(claim_id, verdict):
    assert next(claim for claim in CLAIMS if claim["id"] == claim_id)["verdict"] == verdict
