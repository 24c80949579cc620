"""What only the servers themselves can show: that leases end there by time, that etcd tells, and who may come in."""

import asyncio
import base64
from collections.abc import Callable

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.leases.board import Away, Forgotten
from hourhand.leases.etcd import EtcdBoard, round_trip
from hourhand.leases.etcd_gateway import EtcdGateway
from hourhand.leases.redis import RedisBoard, connect
from hourhand.ports.store import LeaseLost
from tests.servers.etcd import EtcdServer
from tests.servers.etcd import ask as ask_etcd
from tests.servers.redis import ask as ask_redis

PATIENCE_S = 5.0
SOON_S = 20.0


async def test_redis_ends_leases_by_its_own_time_and_drops_an_abandoned_board(redis_url: str) -> None:
    client = connect(redis_url, PATIENCE_S)

    def board(lease_us: int) -> RedisBoard:
        return RedisBoard(client, url=redis_url, name="c:0", lease_us=lease_us, patience_s=PATIENCE_S)

    short, long = board(SECOND_US // 10), board(3_600 * SECOND_US)
    await long.enter(2, [])
    assert (await short.enter(1, [5])).of(1) == {5}
    async with asyncio.timeout(SOON_S):
        while 1 in (view := await long.renew(2)).members:
            pass
    assert view.of(1) == {5}, "what the dead held stays under its name"
    with pytest.raises(LeaseLost):
        await short.renew(1)
    with pytest.raises(LeaseLost):
        await short.change(1, [], {6: 0})
    for part in ("members", "holders", "meta"):
        assert 0 < int(ask_redis(redis_url, f"PTTL {{hh:c:0}}:leases:{part}")[1:]) <= 7 * 86_400_000
    await client.aclose()


async def test_redis_tells_boards_of_other_names_nothing(redis_url: str) -> None:
    client = connect(redis_url, PATIENCE_S)
    one, other = (
        RedisBoard(client, url=redis_url, name=name, lease_us=SECOND_US * 60, patience_s=PATIENCE_S)
        for name in ("a:0", "a:1")
    )
    await one.enter(1, [3])
    view = await other.enter(2, [])
    assert (view.members, view.holders) == ({2}, {})
    assert ask_redis(redis_url, "DEL {hh:a:1}:leases:meta") == ":1"
    with pytest.raises(Forgotten):
        await other.renew(2)
    assert (await one.renew(1)).of(1) == {3}
    await client.aclose()


async def test_etcd_ends_leases_by_its_own_time_and_tells_those_who_watch(etcd_url: str) -> None:
    gateways = [EtcdGateway(etcd_url, PATIENCE_S) for _ in range(2)]
    name = base64.b32encode(asyncio.get_running_loop().time().hex().encode()).decode()
    short = EtcdBoard(gateways[0], name=name, lease_us=SECOND_US)
    long = EtcdBoard(gateways[1], name=name, lease_us=3_600 * SECOND_US)
    heard = asyncio.Event()
    long.subscribe(heard.set)
    await long.enter(2, [])
    assert (await short.enter(1, [5])).of(1) == {5}
    async with asyncio.timeout(SOON_S):
        while 1 in (view := await long.renew(2)).members:
            heard.clear()
            if 1 in (await long.renew(2)).members:
                await heard.wait()
    assert view.of(1) == {5}
    with pytest.raises(LeaseLost):
        await short.renew(1)
    with pytest.raises(LeaseLost):
        await short.change(1, [], {6: 0})
    for board, gateway in zip((short, long), gateways, strict=True):
        await board.close()
        await gateway.close()


async def test_etcd_lets_in_who_can_log_in_and_tries_the_next_endpoint(
    own_etcd: Callable[[], EtcdServer],
) -> None:
    server = own_etcd()
    for path, body in (
        ("auth/user/add", {"name": "root", "password": "geheim"}),
        ("auth/user/grant", {"user": "root", "role": "root"}),
        ("auth/enable", {}),
    ):
        ask_etcd(server.url, path, **body)
    hosts = f"127.0.0.1:1,127.0.0.1:{server.port}"
    for account, fault in (
        ("root:geheim@", None),
        ("root:falsch@", "cannot log in as root"),
        ("", "user name"),
    ):
        gateway = EtcdGateway(f"etcd://{account}{hosts}", PATIENCE_S)
        board = EtcdBoard(gateway, name="c:0", lease_us=60 * SECOND_US)
        try:
            if fault is None:
                await board.enter(1, [7])
                assert (await board.renew(1)).of(1) == {7}
            else:
                with pytest.raises(Away, match=fault) as refused:
                    await board.enter(1, [7])
                assert "falsch" not in str(refused.value) + gateway.where
        finally:
            await board.close()
            await gateway.close()


async def test_what_is_no_etcd_is_said_to_be_none(redis_server_url: str) -> None:
    gateway = EtcdGateway(redis_server_url.replace("redis://", "etcd://").rpartition("/")[0], PATIENCE_S)
    with pytest.raises(Away):
        await round_trip(gateway)
    await gateway.close()


async def test_more_segments_than_one_transaction_takes(etcd_url: str) -> None:
    gateway = EtcdGateway(etcd_url, PATIENCE_S)
    board = EtcdBoard(gateway, name=f"many-{id(gateway)}", lease_us=60 * SECOND_US)
    await board.enter(1, range(150))
    view = await board.change(1, range(0, 150, 2), dict.fromkeys(range(150, 400), 0))
    assert view.of(1) == {*range(1, 150, 2), *range(150, 400)}
    await board.leave(1)
    assert (await board.enter(2, ())).holders == {}
    await board.close()
    await gateway.close()
