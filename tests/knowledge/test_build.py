"""The built file: whole or not at all, and readable by whoever runs the program."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from knowledge import article_tables, store
from knowledge.build import build, data_version
from tools.errors import InputProblem


def test_another_user_than_the_one_who_installed_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.db"
    assert build(path) == data_version()
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444
    assert [file.name for file in tmp_path.iterdir()] == ["knowledge.db"]


def test_a_build_that_fails_leaves_the_file_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "knowledge.db"
    path.write_bytes(b"as it was")
    monkeypatch.setattr(article_tables, "add_articles", lambda _db: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build(path)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("knowledge.db", b"as it was")]


def test_a_file_that_this_user_may_not_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "knowledge.db"
    path.write_bytes(b"")
    monkeypatch.setattr(store.os, "access", lambda *_: False)  # whoever runs this may be root, who reads everything
    with pytest.raises(InputProblem, match="not readable by this user"):
        store._opened(path)
