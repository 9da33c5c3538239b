"""The MCP surface: the tools, the knowledge and two prompts for agents, over standard input and output or HTTP."""
