"""The routes of the gateway, one file for each noun."""
