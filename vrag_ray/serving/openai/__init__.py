"""OpenAI's HTTP interface over the gateway's ``Backend``: shapes, conversations, streams. No Ray."""
