"""A load generator that costs little: one thread, one epoll, requests that were built beforehand.

It shares the machine's cores with what it measures, so every microsecond here would make two services
look more alike than they are.
"""

import select
import socket
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

BUFFER = 65_536
END_OF_HEAD = b"\r\n\r\n"
LENGTH = b"content-length: "


@dataclass(frozen=True)
class Outcome:
    """What a load met.

    Attributes:
        seconds: How long it ran.
        statuses: Responses by status.
        latencies: Of each response, in order of arrival [s].
        starts: When each of these requests was due [s, monotonic].
    """

    seconds: float
    statuses: Counter[str]
    latencies: list[float]
    starts: list[float]

    @property
    def rate(self) -> float:
        """Responses a second."""
        return self.statuses.total() / self.seconds

    def within(self, begun: float, ended: float) -> list[float]:
        """Latencies of the requests that were under way at some time of this span."""
        return [
            latency
            for start, latency in zip(self.starts, self.latencies, strict=True)
            if start < ended and start + latency > begun
        ]

    def expect(self, *statuses: str) -> "Outcome":
        """The same, or an error where other statuses came."""
        if not self.statuses or not set(self.statuses) <= set(statuses):
            raise RuntimeError(f"the service answered {dict(self.statuses)}, expected {statuses}")
        return self


@dataclass
class _Connection:
    socket: socket.socket
    started: float = 0.0
    received: bytes = b""


@dataclass
class Load:
    """Keep-alive connections to one port.

    Args:
        port: Of the service on 127.0.0.1.
        connections: How many.
    """

    port: int
    connections: int
    _poll: select.epoll = field(default_factory=select.epoll)
    _open: dict[int, _Connection] = field(default_factory=dict)

    def __enter__(self) -> "Load":
        for _ in range(self.connections):
            self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._open.values():
            connection.socket.close()
        self._poll.close()

    def saturate(self, requests: Iterator[bytes], seconds: float) -> Outcome:
        """Send the next request on a connection as soon as its last one is answered."""
        statuses: Counter[str] = Counter()
        latencies: list[float] = []
        starts: list[float] = []
        begun = time.perf_counter()
        deadline = begun + seconds
        for connection in self._open.values():
            self._send(connection, next(requests), time.perf_counter())
        busy = len(self._open)
        while busy:
            for descriptor, _ in self._poll.poll(30):
                connection = self._open[descriptor]
                status = self._receive(connection)
                if status is None:
                    continue
                now = time.perf_counter()
                if now < deadline:
                    statuses[status] += 1
                    latencies.append(now - connection.started)
                    starts.append(connection.started)
                    self._send(connection, next(requests), now)
                else:
                    busy -= 1
        return Outcome(seconds, statuses, latencies, starts)

    def pace(self, requests: Iterator[bytes], seconds: float, rate: float) -> Outcome:
        """Send requests at a fixed rate, whatever the answers do.

        A request that waits for a free connection has begun when it was due, so a stall shows in full.
        """
        statuses: Counter[str] = Counter()
        latencies: list[float] = []
        starts: list[float] = []
        begun = time.perf_counter()
        due, number, planned = begun, 0, int(seconds * rate)
        idle = deque(self._open.values())
        waiting: deque[float] = deque()
        while number < planned or len(idle) < len(self._open):
            now = time.perf_counter()
            while number < planned and due <= now:
                waiting.append(due)
                number += 1
                due = begun + number / rate
            while waiting and idle:
                self._send(idle.popleft(), next(requests), waiting.popleft())
            pause = max(due - time.perf_counter(), 0) if number < planned else 30
            for descriptor, _ in self._poll.poll(pause):
                connection = self._open[descriptor]
                status = self._receive(connection)
                if status is not None:
                    statuses[status] += 1
                    latencies.append(time.perf_counter() - connection.started)
                    starts.append(connection.started)
                    idle.append(connection)
        return Outcome(time.perf_counter() - begun, statuses, latencies, starts)

    def _connect(self) -> None:
        one = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.setblocking(False)
        self._poll.register(one, select.EPOLLIN)
        self._open[one.fileno()] = _Connection(one)

    @staticmethod
    def _send(connection: _Connection, request: bytes, started: float) -> None:
        connection.started = started
        connection.received = b""
        connection.socket.send(request)

    @staticmethod
    def _receive(connection: _Connection) -> str | None:
        """Status of the response once it is complete."""
        data = connection.socket.recv(BUFFER)
        if not data:
            raise ConnectionError("the service closed a connection")
        received = connection.received = connection.received + data
        head = received.find(END_OF_HEAD)
        if head < 0:
            return None
        place = received.find(LENGTH, 0, head)
        length = int(received[place + len(LENGTH) : received.index(b"\r", place)]) if place >= 0 else 0
        if len(received) < head + len(END_OF_HEAD) + length:
            return None
        return received[9:12].decode()


def quantile(values: list[float], level: float) -> float:
    """The smallest value that at least this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(level * len(ordered)), len(ordered) - 1)]


def rate(port: int, connections: int, requests: Iterator[bytes], seconds: float) -> float:
    """Requests a second that a port answers with 201, over fresh connections that are kept alive."""
    with Load(port, connections) as load:
        return load.saturate(requests, seconds).expect("201").rate
