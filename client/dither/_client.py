"""The clients: all that a service can be asked, in the calling thread and for asyncio."""

from dither._async.admin import AsyncAdmin
from dither._async.analyst import AsyncAnalyst
from dither._async.device import AsyncDevice
from dither._async.sessions import AsyncSessions
from dither._sync.admin import Admin
from dither._sync.analyst import Analyst
from dither._sync.device import Device
from dither._sync.sessions import Sessions


class Client(Device, Analyst, Sessions, Admin):
    """A Dither service, seen from a device or from the desk of an analyst or an admin.

    A client with a directory is a device: it keeps a ledger there of everything it gives away, so that
    asking twice never draws noise twice. Use one directory for one service, and keep it. Safe to share
    between threads; several processes may use the same directory.

    Args:
        base_url: Address of the service, without `/v1`.
        token: Bearer token.
        directory: Where the device keeps its ledger, its reports and its key; made when needed. None: no
            local reports, unless there is a store.
        store: Where a backend without a disk keeps the ledgers of people, in place of a directory.
        max_epsilon: The person's own limit for each subject, over everything this device gives away. It is
            checked before anything is sent; no service can raise it. Public values, which have no
            privacy, are refused with it.
        timeout: Seconds for connecting, sending and receiving each, or an `httpx.Timeout`.
        proxy: Address of a proxy. None: what HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say.
        ca: A file or directory of certificates in PEM that are trusted besides the usual ones, as that of an
            organization's own authority. None: what DITHER_CA says.
        retry: How often and how patiently requests are tried again.
        transport: Another way to send, for tests.

    Raises:
        InvalidRequest: an argument is not admissible.

    Examples:
        >>> with Client("https://dither.example", "a-token", directory=path, transport=service) as device:
        ...     device.contribute("commute", subject="ada", value=34, epsilon="0.5", trust="local").status
        'created'
    """


class AsyncClient(AsyncDevice, AsyncAnalyst, AsyncSessions, AsyncAdmin):
    """The same as `Client`, for asyncio: every method is a coroutine, or an asynchronous iterator.

    What blocks (the ledger's fsync, drawing noise for a large batch) runs in a thread. Tasks that write to
    the ledger at the same time share an fsync, and those that wait for the same round share a request, so
    one client can stand for thousands of people.

    Args and Raises: see `Client`.

    Examples:
        >>> async def device() -> None:
        ...     async with AsyncClient(
        ...         "https://dither.example", "a-token", directory=path, transport=service
        ...     ) as client:
        ...         await client.contribute("commute", subject="ada", value=34, epsilon=1, trust="local")
        ...         print((await client.ledger()).totals)
        >>> asyncio.run(device())
        {'ada': Decimal('1')}
    """
