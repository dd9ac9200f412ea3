"""Collections at rest: Lance tables, blobs, versions and checksums. ``writer`` is the one way to change one."""
