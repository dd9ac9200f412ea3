"""Start another program under limits that the kernel holds, without a network: run as a module, see ``main``.

It is imported with nothing of the package's own, since it is started once for each file.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000
"""Flags of Linux's ``unshare``."""


def leave_network() -> bool:
    """Give this process a network of its own that leads nowhere; False where the system does not allow that."""
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (OSError, AttributeError):
        return False
    user, group = os.geteuid(), os.getegid()
    if unshare(_NEW_NETWORK) == 0:
        return True
    if unshare(_NEW_USERS | _NEW_NETWORK) != 0:
        return False
    # In its own space of users a process is nobody until it is mapped to whom it was.
    with suppress(OSError):
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    return True


def main() -> None:
    """``MEMORY_BYTES CPU_SECONDS FILE_BYTES PROGRAM [ARGUMENT]...``: the program takes the place of this process."""
    memory, seconds, size = map(int, sys.argv[1:4])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # One second between the signal that warns the process and the signal that ends it.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    leave_network()
    os.execv(sys.argv[4], sys.argv[4:])  # noqa: S606  no shell


if __name__ == "__main__":
    main()
