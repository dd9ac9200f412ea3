"""A bucket behind a real S3 endpoint (moto's server) on the loopback interface, in a thread of this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Bucket:
    """``endpoint`` is the server's ``host:port``."""

    name: str
    endpoint: str

    def uri(self, path: str) -> str:
        """With the endpoint as an option, so that any process can open it, whatever its environment says."""
        return f"s3://{self.name}/{path}?endpoint_override={self.endpoint}&scheme=http&region=us-east-1"

    def files(self, path: str) -> list[str]:
        """The names of all files below ``path``, sorted."""
        from pyarrow import fs

        store, root = fs.FileSystem.from_uri(self.uri(path))
        entries = store.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
        return sorted(info.path.removeprefix(f"{root}/") for info in entries if info.type == fs.FileType.File)

    def download(self, path: str, target: Path) -> Path:
        """Copy the folder ``path`` to ``target``."""
        from pyarrow import fs

        target.mkdir(parents=True, exist_ok=True)
        fs.copy_files(self.uri(path), str(target))
        return target

    def upload(self, source: Path, path: str) -> str:
        """Copy the folder ``source`` to ``path``; its URI."""
        from pyarrow import fs

        store, root = fs.FileSystem.from_uri(self.uri(path))
        fs.copy_files(str(source), root, destination_filesystem=store, use_threads=False)
        return self.uri(path)


@contextmanager
def served_bucket(name: str = "training") -> Iterator[Bucket]:
    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"{host}:{port}"
        fs.S3FileSystem(
            endpoint_override=endpoint, scheme="http", region="us-east-1", allow_bucket_creation=True
        ).create_dir(name)
        yield Bucket(name, endpoint)
    finally:
        server.stop()
