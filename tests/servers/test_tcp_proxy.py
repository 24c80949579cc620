"""The proxy fails in each of its ways, only in that way, and heals; against a real echo and a real PostgreSQL."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.servers.postgres_databases import PostgresDatabases
from tests.servers.tcp_proxy import TcpProxy, ThreadedTcpProxy, Trap

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 20.0
SILENCE_S = 0.2


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65_536):
            writer.write(chunk.upper())
    except ConnectionError:
        pass
    finally:
        writer.close()


@pytest.fixture
async def proxy() -> AsyncIterator[TcpProxy]:
    """In front of a server that answers in capitals."""
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    async with TcpProxy("127.0.0.1", server.sockets[0].getsockname()[1]) as proxy:
        yield proxy
    server.close()


class Client:
    """A connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def of(cls, proxy: TcpProxy) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", proxy.port))

    async def ask(self, text: bytes) -> bytes:
        self.writer.write(text)
        return await self.read()

    async def read(self) -> bytes:
        return await asyncio.wait_for(self.reader.read(1000), ANSWER_S)

    async def is_silent(self) -> bool:
        try:
            await asyncio.wait_for(self.reader.read(1000), SILENCE_S)
        except TimeoutError:
            return True
        return False


async def test_bytes_pass_both_ways(proxy: TcpProxy) -> None:
    client = await Client.of(proxy)
    assert await client.ask(b"hello") == b"HELLO"
    assert proxy.connections == 1
    large = b"x" * 3_000_000
    client.writer.write(large)
    client.writer.write_eof()
    assert await asyncio.wait_for(client.reader.read(), ANSWER_S) == large.upper()


async def test_cut_resets_what_is_there_and_lets_new_ones_in(proxy: TcpProxy) -> None:
    clients = [await Client.of(proxy) for _ in range(3)]
    for client in clients:
        await client.ask(b"a")
    assert proxy.cut() == 3
    for client in clients:
        with pytest.raises(ConnectionResetError):
            await client.read()
    assert await (await Client.of(proxy)).ask(b"b") == b"B"


async def test_refuse_turns_new_ones_away_and_keeps_the_old(proxy: TcpProxy) -> None:
    old = await Client.of(proxy)
    await old.ask(b"a")
    await proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        await Client.of(proxy)
    assert await old.ask(b"b") == b"B"
    await proxy.heal()
    assert await (await Client.of(proxy)).ask(b"c") == b"C"


@pytest.mark.parametrize("direction", ["to_server", "to_client", "both"])
async def test_stall_accepts_and_says_nothing_until_healed(proxy: TcpProxy, direction: str) -> None:
    old = await Client.of(proxy)
    await old.ask(b"a")
    proxy.stall(direction)
    new = await Client.of(proxy)
    for client in (old, new):
        client.writer.write(b"late")
        assert await client.is_silent()
    await proxy.heal()
    for client in (old, new):
        assert await client.read() == b"LATE"


async def test_delay_holds_each_chunk_back_both_ways(proxy: TcpProxy) -> None:
    client = await Client.of(proxy)
    await client.ask(b"a")
    proxy.delay(100)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    assert await client.ask(b"b") == b"B"
    assert loop.time() - began_s >= 0.19


async def test_a_trap_sees_a_pattern_that_comes_in_pieces_and_springs_once(proxy: TcpProxy) -> None:
    trap = proxy.cut_after(b"commit")
    client, other = await Client.of(proxy), await Client.of(proxy)
    assert await client.ask(b"xx com") == b"XX COM"
    with pytest.raises(ConnectionResetError):
        await client.ask(b"mit")
    assert trap.sprung
    assert await other.ask(b"commit") == b"COMMIT"


async def test_a_trap_after_the_reply_lets_it_through(proxy: TcpProxy) -> None:
    trap = proxy.cut_after(b"commit", before_reply=False)
    client = await Client.of(proxy)
    assert await client.ask(b"commit") == b"COMMIT"
    assert await client.read() == b""
    assert trap.sprung


@pytest.mark.parametrize(("moment", "committed"), [("before", 0), ("after", 1)])
async def test_an_unknown_commit_is_made_or_not(
    postgres_server: PostgresDatabases, postgres_url: str, moment: str, committed: int
) -> None:
    postgres_server.execute("CREATE TABLE t (id int)", database=postgres_url)
    async with TcpProxy.to_url(postgres_url) as proxy:
        connection = await asyncpg.connect(proxy.url_of(postgres_url), ssl=False)
        trap: Trap = (
            proxy.cut_before(b"COMMIT") if moment == "before" else proxy.cut_after(b"COMMIT", reply=b"COMMIT")
        )
        with pytest.raises((OSError, asyncpg.PostgresConnectionError)):
            async with asyncio.timeout(ANSWER_S), connection.transaction():
                await connection.execute("INSERT INTO t VALUES (1)")
        assert trap.sprung
        connection.terminate()
    assert postgres_server.query("SELECT count(*) FROM t", database=postgres_url)[0][0] == committed


@pytest.fixture
def echo_port() -> Iterator[int]:
    """A server without a loop, for tests without one."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    while chunk := connection.recv(1000):
                        connection.sendall(chunk.upper())
                except ConnectionError:
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(ANSWER_S)


def test_a_test_without_a_loop_has_the_proxy_in_a_thread(echo_port: int) -> None:
    with ThreadedTcpProxy("127.0.0.1", echo_port) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), ANSWER_S) as client:
            client.sendall(b"a")
            assert client.recv(10) == b"A"
            assert proxy.connections == 1
            assert proxy.cut() == 1
            with pytest.raises(ConnectionResetError):
                client.recv(10)
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", proxy.port), ANSWER_S)
        proxy.heal()
        trap = proxy.cut_after(b"b")
        with socket.create_connection(("127.0.0.1", proxy.port), ANSWER_S) as client:
            client.sendall(b"b")
            with pytest.raises(ConnectionResetError):
                client.recv(10)
        assert trap.sprung


def test_a_process_takes_faults_as_lines(echo_port: int) -> None:
    command = [sys.executable, "-m", "tests.servers.tcp_proxy", f"127.0.0.1:{echo_port}"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), ANSWER_S) as client:
            client.sendall(b"a")
            assert client.recv(10) == b"A"
            process.stdin.write("cut\n")
            assert process.stdout.readline() == "done\n"
            with pytest.raises(ConnectionResetError):
                client.recv(10)
        process.stdin.write("explode\n")
        assert process.stdout.readline() == "unknown: explode\n"
        process.stdin.close()
        assert process.wait(ANSWER_S) == 0
