"""``vrag ask --picture``: the file reaches the server as it is, whatever its format."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

from tests.support.openai_calls import data_url
from vrag_ray.cli.main import main


@contextmanager
def refusing_server(bodies: list[dict[str, object]]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            content = json.dumps({"error": {"message": "seen", "type": "t", "param": None, "code": "c"}}).encode()
            self.send_response(422)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_file_is_sent_with_the_question(tmp_path: Path, capsys):
    data = base64.b64decode(data_url(form="GIF").partition(",")[2])
    picture = tmp_path / "any name.gif"
    picture.write_bytes(data)
    bodies: list[dict[str, object]] = []
    with refusing_server(bodies) as url:
        arguments = ["ask", "what is this?", "--url", url, "--picture", str(picture), "--evidence", "both"]
        assert main(arguments) == 1
    [body] = bodies
    assert "seen" in capsys.readouterr().err
    assert (body["question"], body["evidence"]) == ("what is this?", "both")
    sent = base64.b64decode(str(body["picture"]).partition(",")[2])
    assert hashlib.sha256(sent).digest() == hashlib.sha256(data).digest()
