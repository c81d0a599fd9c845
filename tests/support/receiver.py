"""A receiver of webhooks, as a program: PORT FILE. A request is a row of the file before it is answered.

SQLite keeps the rows, so a kill leaves none of them half written.
"""

import json
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60.0


def prepare(file: str | Path) -> None:
    """Make an empty file."""
    with sqlite3.connect(file, isolation_level=None) as rows:
        rows.execute("PRAGMA journal_mode = WAL")
        rows.execute("CREATE TABLE received (event TEXT NOT NULL)")
    rows.close()


def received(file: str | Path) -> list[dict[str, Any]]:
    """The events that came, in their order: `path`, `headers` and `body` of each."""
    with sqlite3.connect(file, timeout=PATIENCE_SECONDS) as rows:
        found = rows.execute("SELECT event FROM received ORDER BY rowid").fetchall()
    rows.close()
    return [json.loads(event) for (event,) in found]


class Receiver(BaseHTTPRequestHandler):
    """Writes down what comes."""

    def do_POST(self) -> None:
        """Take an event."""
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        headers = {name: value for name, value in self.headers.items() if name.startswith("webhook-")}
        event = json.dumps({"path": self.path, "headers": headers, "body": body})
        with sqlite3.connect(sys.argv[2], timeout=PATIENCE_SECONDS) as rows:
            rows.execute("INSERT INTO received VALUES (?)", (event,))
        rows.close()
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Be quiet."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
