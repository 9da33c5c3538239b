"""``/mcp``: the MCP server over streamable HTTP, behind the same keys, rates and limits as every other route.

Stateless, so that any server process can answer any request: the tools keep nothing between calls.
"""

from __future__ import annotations

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from integrations.http.problems import ServiceProblem, error_response
from integrations.http.service import Service
from integrations.mcp.server import build_server


class McpMount:
    """The route; ``manager.run()`` must be entered while the server runs."""

    def __init__(self, service: Service, version: str) -> None:
        self._service = service

        def observe(name: str, outcome: str, seconds: float) -> None:
            service.metrics.tool(name, "mcp", outcome, seconds)

        self.manager = StreamableHTTPSessionManager(
            build_server(version, observe),
            json_response=True,
            stateless=True,
            max_request_body_size=service.settings.body_bytes,
            # Names are checked where callers are told apart, for all routes alike.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the caller in, then hand the request to the protocol."""
        try:
            await self._service.auth.admit(scope, "tools")
        except ServiceProblem as refusal:
            problem = refusal.problem.as_dict()
            await error_response(scope["path"], refusal.status, problem, refusal.headers)(scope, receive, send)
            return
        await self.manager.handle_request(scope, receive, send)
