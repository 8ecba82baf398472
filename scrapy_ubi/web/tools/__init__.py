"""Tools for models (`scrapy ubi mcp`): what commands answer, over the Model Context Protocol.

* `tool_list`: which tools there are, with their parameters, and the function behind a command that answers each.
* `answers`: an answer as text that is bounded, and marked where it holds what came from the web.
* `mcp_server`: the server, on standard input and output.

The SDK is imported in `mcp_server` only.
"""
