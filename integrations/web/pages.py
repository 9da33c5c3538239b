"""Routes of the page: the shell at every address a person may share, and the static files."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from integrations.web import present
from tools.registry import all_tools

HERE = Path(__file__).parent
STARTERS = (
    "what GPU for 70B QLoRA?",
    "can I full fine-tune Llama 3.1 8B on one H100?",
    "how long and how much to train a 1B model on 20B tokens on 8xA100?",
    "do I need InfiniBand for 2 nodes of 8xH100 training a 7B?",
    "cheapest H100 per hour right now?",
)
router = APIRouter(include_in_schema=False)


@router.get("/")
@router.get("/c/{conversation_id}")
@router.get("/tools")
@router.get("/tools/{name}")
@router.get("/compare")
def shell() -> HTMLResponse:
    """The one page; its script reads the address and shows a conversation, a calculator or a comparison."""
    return HTMLResponse(_shell(), headers={"cache-control": "no-cache"})


def install(app: FastAPI) -> None:
    """Add the page's routes, its presenting routes and /static (compressed) to the app."""
    app.include_router(router)
    app.include_router(present.router)
    app.mount("/static", GZipMiddleware(_Static(directory=HERE / "static"), minimum_size=500), name="static")


class _Static(StaticFiles):
    """Own modules are checked by ETag on each visit; the vendored bundles change only with their content."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        vendored = path.startswith("vendor/")
        response.headers["cache-control"] = "public, max-age=86400" if vendored else "no-cache"
        return response


@lru_cache(maxsize=1)
def _shell() -> str:
    pages = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape())
    style = hashlib.sha256((HERE / "static" / "app.css").read_bytes()).hexdigest()[:12]
    tools = [(spec.name, spec.name.replace("_", " ")) for spec in all_tools().values()]
    return pages.get_template("index.html").render(starters=STARTERS, tools=tools, style=style)
