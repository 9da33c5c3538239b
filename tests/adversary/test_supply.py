"""What the product is made of: no code from data, locked packages above known holes, no network at import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("advisor", "integrations", "knowledge", "tools", "evals")
LOCKS = ("requirements.lock", "requirements-dev.lock")

# Modules that run or unpack code from data, and calls that do.
MODULES = {
    "pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle", "diskcache",
    "pty", "telnetlib", "ftplib", "imp",
}  # fmt: skip
CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.execv", "os.spawnv", "yaml.unsafe_load",
    "yaml.full_load", "yaml.full_load_all", "torch.load", "numpy.load", "np.load", "commands.getoutput",
    "tempfile.mktemp", "ssl._create_unverified_context",
}  # fmt: skip
# Where one of them is meant, and why it is harmless.
MEANT = {
    ("advisor/llm/planner/grammar.py", "yaml.load"): "the C twin of safe_load, on a file of the package",
    ("knowledge/foreign.py", "yaml.load_all"): "the C twin of safe_load_all, after the events were looked at",
    ("evals/bench.py", "subprocess"): "times the product's own command line",
    ("evals/load.py", "subprocess"): "starts the server that it loads",
    ("evals/check_launch_files.py", "subprocess"): "lets other programs read the files that we write",
    ("evals/peers/__main__.py", "subprocess"): "runs the compared programs with arguments of ours",
}

# From advisories (NVD, GitHub): the first release without a known hole, as of November 2026.
FLOORS = {
    "litellm": "1.84.0",  # CVE-2026-42208, CVE-2026-35030, CVE-2026-49468, GHSA-xqmj-j6mv-4862, GHSA-69x8-hrgq-fjj8
    "starlette": "1.5.1",  # CVE-2025-62727, CVE-2026-48710, CVE-2026-48817, CVE-2026-54282; 100 ranges since 1.5.1
    "python-multipart": "0.0.31",  # CVE-2024-24762, CVE-2026-24486, CVE-2026-40347, GHSA-5rvq-cxj2-64vf
    "mcp": "1.28.1",  # CVE-2025-66416, CVE-2026-52869, CVE-2026-59950
    "jinja2": "3.1.6",  # CVE-2024-56201, CVE-2024-56326, CVE-2025-27516
    "aiohttp": "3.13.3",  # CVE-2025-69223: a bomb in one chunk
    "httpx2": "2.12.0",  # CVE-2026-84382: a chunk inflated whole
    "slack-bolt": "1.29.0",  # ssl_check=1 went past the signature
}
DENIED = {("litellm", "1.82.7"), ("litellm", "1.82.8")}  # stolen token, 24 March 2026: a .pth that ran at every start
PATH_FILES = {"distutils-precedence.pth"}  # setuptools' own; an editable install adds one of this project's name


def test_no_module_runs_code_from_data() -> None:
    found = {}
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            name = file.relative_to(ROOT).as_posix()
            for what, line in banned(file.read_text(encoding="utf-8")):
                if (name, what) not in MEANT:
                    found[f"{name}:{line}"] = what
    assert found == {}


def test_exceptions_are_still_needed() -> None:
    for name, what in MEANT:
        assert what in {found for found, _line in banned((ROOT / name).read_text(encoding="utf-8"))}, (name, what)


BAD = {
    "import pickle": "pickle",
    "from marshal import loads": "marshal",
    "import os\nos.system(x)": "os.system",
    "eval(x)": "eval",
    "exec(x)": "exec",
    "import yaml\nyaml.load(x)": "yaml.load",
    "import yaml\nyaml.load(x, Loader=yaml.Loader)": "yaml.load",
    "import yaml\nyaml.load_all(x, yaml.UnsafeLoader)": "yaml.load_all",
    "import yaml as y\ny.load(x, Loader=whatever)": "yaml.load",
    "from yaml import unsafe_load\nunsafe_load(x)": "yaml.unsafe_load",
    "import subprocess\nsubprocess.run(x, shell=True)": "shell=True",
    "import subprocess\nsubprocess.run(['ls', x])": "subprocess",
    "from subprocess import Popen\nPopen(x)": "subprocess",
    "import torch\ntorch.load(x)": "torch.load",
    "from jinja2 import Environment\nEnvironment().from_string(x)": "from_string",
    "from jinja2 import Template\nTemplate(x)": "Template",
    "import httpx\nhttpx.get(x, verify=False)": "verify=False",
    "import asyncio\nasyncio.create_subprocess_shell(x)": "create_subprocess_shell",
    "db.execute(f'select {x}').fetchall(); db.enable_load_extension(True)": "enable_load_extension",
}


@pytest.mark.parametrize("source", BAD)
def test_bad_code_would_be_found(source: str) -> None:
    assert BAD[source] in {what for what, _line in banned(source)}


@pytest.mark.parametrize(
    "source", ["import yaml\nyaml.safe_load(x)", "re.compile(x)", "model.eval()", "store.execute(x)", "json.loads(x)"]
)
def test_harmless_code_is_not(source: str) -> None:
    assert list(banned(source)) == []


@pytest.mark.parametrize("lock", LOCKS)
def test_locked_packages_have_hashes_and_no_known_hole(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert wrong_pins(text) == []
    if lock == "requirements.lock":
        names = {name for name, _version, _hashes in pins(text)}
        assert names >= {"litellm", "starlette", "jinja2", "aiohttp", "slack-bolt", "mcp"}
        assert "pip-audit" not in names  # it finds nothing for packages that come from a mirror, and says all is well


def test_a_bad_pin_would_be_found() -> None:
    good = "litellm==1.84.0 \\\n    --hash=sha256:" + "0" * 64 + "\n"
    assert wrong_pins(good) == []
    assert wrong_pins(good.replace("1.84.0", "1.82.8")) == [
        "litellm 1.82.8 is denied",
        "litellm 1.82.8 is below 1.84.0",
    ]
    assert wrong_pins(good.replace("1.84.0", "1.9.0")) == ["litellm 1.9.0 is below 1.84.0"]
    assert wrong_pins("jinja2==3.1.4 \\\n    --hash=sha256:" + "0" * 64) == ["jinja2 3.1.4 is below 3.1.6"]
    assert wrong_pins("x==1.0\n") == ["x 1.0 has no hash"]
    assert wrong_pins("x @ https://example.org/x.whl\n") == ["not a pin: x @ https://example.org/x.whl"]
    assert wrong_pins("--index-url https://example.org\n") == ["not a pin: --index-url https://example.org"]
    assert wrong_pins("-e ./x\n") == ["not a pin: -e ./x"]


def test_the_image_and_make_install_by_hash_alone() -> None:
    for name in ("Makefile", "Dockerfile"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "--require-hashes" in text, name
        assert not re.search(r"curl[^\n]*\|\s*(?:ba)?sh|--trusted-host|--extra-index-url|--index-url", text), name


def test_nothing_runs_at_the_start_of_every_interpreter() -> None:
    folder = Path(sysconfig.get_path("purelib"))
    strange = sorted(file.name for file in folder.glob("*.pth") if not expected_path_file(file))
    assert strange == []
    assert not list(folder.glob("sitecustomize.py")) + list(folder.glob("usercustomize.py"))


def test_a_strange_path_file_would_be_found(tmp_path: Path) -> None:
    def made(name: str, text: str) -> bool:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return expected_path_file(tmp_path / name)

    assert made("distutils-precedence.pth", "import os; x")
    assert made("_training_infrastructure_advisor.pth", str(ROOT) + "\n")
    assert not made("litellm_init.pth", "import os, subprocess; x")
    assert not made("_training_infrastructure_advisor.pth", "import os\n")
    assert not made("extra.pth", "/tmp\n")


MODULES_AT_IMPORT = ["advisor.cli", "advisor.turn", "integrations.http.app", "integrations.mcp.server",
                     "integrations.slack.app", "integrations.prices.refresh", "integrations.hub.lookup"]  # fmt: skip


def test_importing_the_product_opens_no_socket_and_starts_nothing(tmp_path: Path) -> None:
    assert imported("; ".join(f"import {name}" for name in MODULES_AT_IMPORT)) == ""


@pytest.mark.slow
def test_importing_litellm_by_our_door_opens_no_socket() -> None:
    assert imported("from advisor.llm.client import load_litellm; load_litellm()") == ""


def test_a_socket_at_import_would_be_found() -> None:
    assert "socket.connect" in imported("import socket; s = socket.socket(); s.connect_ex(('127.0.0.1', 9))")
    assert "socket.getaddrinfo" in imported("import socket; socket.getaddrinfo('localhost', 80)")
    assert "subprocess.Popen" in imported("import subprocess; subprocess.run(['true'])")


def imported(code: str) -> str:
    """The events by which this code reached outside the process, one a line; "" for none."""
    hook = (
        "import sys\n"
        "OUT = ('socket.connect', 'socket.getaddrinfo', 'socket.sendto', 'subprocess.Popen',"
        " 'os.system', 'os.exec', 'os.posix_spawn', 'os.fork', 'urllib.Request', 'ftplib.connect', 'smtplib.connect')\n"
        "seen = []\n"
        "sys.addaudithook(lambda event, arguments: seen.append(event) if event in OUT else None)\n"
        f"{code}\n"
        "print('\\n'.join(seen))\n"
    )
    done = subprocess.run([sys.executable, "-c", hook], capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def banned(source: str) -> Iterator[tuple[str, int]]:
    """What a source file must not do, with the line."""
    nodes = list(ast.walk(ast.parse(source)))
    names: dict[str, str] = {}  # what a name stands for: "y" -> "yaml", "Popen" -> "subprocess.Popen"
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name] = alias.name
                if alias.name.partition(".")[0] in MODULES:
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            if node.module.partition(".")[0] in MODULES:
                yield node.module, node.lineno
    for node in nodes:
        if isinstance(node, ast.Call):
            for what in _of_call(node, names):
                yield what, node.lineno


def _of_call(node: ast.Call, names: dict[str, str]) -> Iterator[str]:
    name = _dotted(node.func)
    head, _, rest = name.partition(".")
    full = ".".join(part for part in (names.get(head, head), rest) if part)
    last = full.rpartition(".")[2]
    if full in CALLS:
        yield full
    if full in ("yaml.load", "yaml.load_all"):  # safe_load has a name of its own; any other loader must be meant
        yield full
    if full.startswith("subprocess."):
        yield "subprocess"
    if last in ("from_string", "create_subprocess_shell", "enable_load_extension"):
        yield last
    if full == "jinja2.Template":
        yield "Template"
    for keyword in node.keywords:
        if isinstance(keyword.value, ast.Constant) and (keyword.arg, keyword.value.value) in (
            ("shell", True), ("verify", False), ("allow_pickle", True), ("trust_remote_code", True)
        ):  # fmt: skip
            yield f"{keyword.arg}={keyword.value.value}"


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return "?"


def pins(text: str) -> Iterator[tuple[str, str, int]]:
    """(name, version, number of hashes) of each pin of a lock file; ("", line, 0) for a line that is none."""
    for entry in re.sub(r"\\\n\s*", " ", text).splitlines():
        entry = entry.partition("#")[0].strip()
        if not entry:
            continue
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;]+)", entry)
        if match:
            yield (
                re.sub(r"[-_.]+", "-", match[1]).lower(),
                match[2],
                len(re.findall(r"--hash=sha256:[0-9a-f]{64}", entry)),
            )
        else:
            yield "", entry, 0


def wrong_pins(text: str) -> list[str]:
    """What is wrong with a lock file, in words."""
    wrong = []
    for name, version, hashes in pins(text):
        if not name:
            wrong.append(f"not a pin: {version}")
            continue
        if not hashes:
            wrong.append(f"{name} {version} has no hash")
        if (name, version) in DENIED:
            wrong.append(f"{name} {version} is denied")
        if name in FLOORS and _release(version) < _release(FLOORS[name]):
            wrong.append(f"{name} {version} is below {FLOORS[name]}")
    return wrong


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


def expected_path_file(file: Path) -> bool:
    """Whether a .pth file is one of those that may be: it runs at the start of every interpreter."""
    if file.name in PATH_FILES:
        return True
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    ours = "training_infrastructure_advisor" in file.name
    return ours and all(not line.startswith("import") for line in lines)
