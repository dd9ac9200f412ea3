"""The commands of ``vrag``, one module a flow. They import what is heavy inside, so that the CLI starts at once."""
