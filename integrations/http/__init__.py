"""The HTTP surface: native API, OpenAI wire format, MCP over HTTP, operations. Translates; computes nothing."""
