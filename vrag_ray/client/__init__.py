"""The HTTP interface as a program sees it: its JSON, what a system does, clients, and events as words and views."""
