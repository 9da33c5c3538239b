"""What is shipped beside the code: the settings page, the image, the compose file."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from integrations.settings_page import PAGE, render

ROOT = Path(__file__).parents[2]


def test_the_settings_page_says_what_the_code_does() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run: python -m integrations.settings_page"


def test_every_setting_that_the_image_and_the_compose_file_use_exists() -> None:
    known = set(re.findall(r"ADVISOR_[A-Z_]+", render()))
    for name in ("Dockerfile", "compose.yaml"):
        used = set(re.findall(r"ADVISOR_[A-Z_]+", (ROOT / name).read_text(encoding="utf-8")))
        assert used <= known, name


def test_the_image_runs_as_nobody_and_installs_by_hash() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    last_stage = text.rpartition("FROM ")[2]
    assert re.search(r"^USER advisor$", last_stage, re.M)
    assert "--require-hashes" in text
    copied = set(re.findall(r"^COPY (\w+) \1$", text, re.M))
    packages = re.search(r"^packages = (\[.*\])$", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    assert packages is not None
    assert copied == set(yaml.safe_load(packages[1]))


def test_two_servers_share_one_database_and_ask_for_keys() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    server = services["advisor"]
    assert server["deploy"]["replicas"] == 2
    assert server["environment"]["ADVISOR_DATABASE_URL"].startswith("postgresql://")
    assert ":?" in server["environment"]["ADVISOR_API_KEYS"]
    assert server["read_only"]
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert "ports" not in services["database"]
