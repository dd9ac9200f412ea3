"""Uploads on their way into the collection: queued, ingested in a task of their own, remembered."""
