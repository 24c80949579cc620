"""The HTTP server of a process: binds first, so that a taken port is a clear refusal, then serves."""

import contextlib
import socket
from collections.abc import Iterator, Sequence

import uvicorn
from starlette.applications import Starlette

from hourhand.errors import CannotStart
from hourhand.wiring.request_heads import BoundedHttp

_BACKLOG = 2048
_CHOOSE_API = "choose another port with --port, or 0 for any"


def bind(host: str, port: int, choose: str = _CHOOSE_API) -> socket.socket:
    """A listening socket, or CannotStart in words; `choose` says how to choose another."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}; {choose}") from error
    listener.setblocking(False)
    return listener


def address_of(listener: socket.socket) -> str:
    """Where people reach it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Uvicorn without its own signal handling: the process decides when to stop.

    Who asks and by which scheme is what the connection says, unless it comes from one of `trusted_proxies`.
    """

    def __init__(self, app: Starlette, trusted_proxies: Sequence[str] = ()) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=BoundedHttp,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                proxy_headers=bool(trusted_proxies),
                forwarded_allow_ips=list(trusted_proxies),
                date_header=False,
                timeout_graceful_shutdown=5,
                ws="none",
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are not its business."""
        yield

    def stop(self) -> None:
        """Finish the requests under way."""
        self.should_exit = True
