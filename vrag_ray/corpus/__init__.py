"""Bytes become passages: every decode of untrusted bytes runs in a killable child process (``sandbox``)."""
