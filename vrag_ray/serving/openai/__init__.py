"""OpenAI's HTTP interface over the gateway's run and model backends: shapes, conversations, streams. No Ray."""
