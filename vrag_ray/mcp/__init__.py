"""The MCP server: three read-only tools over a running gateway. In here ``import mcp`` means the SDK."""
