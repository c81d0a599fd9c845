"""A socket in front of a node of a cluster, which cuts it off at the moment when it is told to commit."""

import contextlib
import os
import signal
import socket
import threading
from pathlib import Path

from app.postgres.cluster import SOCKET_NAME, Cluster

COMMIT = b"COMMIT PREPARED"
AT_ONCE = 65_536


class Gate:
    """Passes on what is sent to a node, until it is armed and the node is told to commit what it prepared.

    Args:
        node: The node behind it.
        directory: For its socket.

    Attributes:
        directory: The same: where others find the node.
        fell: Set once the node was cut off; `Gate.arm` clears it.
    """

    def __init__(self, node: Cluster, directory: Path) -> None:
        self.directory = directory
        self.fell = threading.Event()
        self._node = node
        self._armed = False
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        directory.mkdir()
        directory.chmod(0o711)
        path = directory / SOCKET_NAME
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o777)
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self) -> None:
        """Let the node fall at the next commit."""
        self.fell.clear()
        self._armed = True

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                coming, _ = self._listener.accept()
            except OSError:
                return
            going = socket.socket(socket.AF_UNIX)
            try:
                going.connect(str(self._node.data / SOCKET_NAME))
            except OSError:
                coming.close()
                going.close()
                continue
            self._open += [coming, going]
            threading.Thread(target=self._pass, args=(coming, going, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(going, coming, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, to_node: bool) -> None:
        try:
            while data := source.recv(AT_ONCE):
                if not to_node:
                    target.sendall(data)
                    continue
                # One transaction may have several connections to a node: none of them gets through any more.
                with self._lock:
                    if self._armed and COMMIT in data:
                        self._fall()
                        return
                    target.sendall(data)
        except OSError:
            pass
        for one in (source, target):
            _shut(one)

    def _fall(self) -> None:
        """Crash the node before it hears of the commit."""
        self._armed = False
        pid = self._node.postmaster_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        cut, self._open = self._open, []
        for one in cut:
            _shut(one)
        self.fell.set()


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
