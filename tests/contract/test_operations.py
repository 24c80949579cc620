"""Operations as they are kept: listed, found by their tenant, moved by compare-and-set, bounded."""

import msgspec
import pytest

from hourhand.core.access import Via
from hourhand.core.instant import DAY_US
from hourhand.core.operation import (
    MAX_UNFINISHED,
    Action,
    JobFilter,
    Operation,
    OperationSpec,
    Step,
    advanced,
)
from hourhand.errors import Conflict, Overloaded
from hourhand.ports.store import Hint
from tests.contract.scene import Scene


async def add(scene: Scene, number: int, tenant: str = "acme", **more: object) -> Operation:
    now_at = await scene.store.now()
    given = {
        "id": number,
        "tenant": tenant,
        "spec": OperationSpec(action=Action.PAUSE, jobs=JobFilter(tag="x"), note="why"),
        "subject": "ann",
        "via": Via.JWT,
        "matched": 1,
        "is_all": True,
        "created_at": now_at,
        "updated_at": now_at,
        "next_at": now_at,
    }
    operation = Operation(**{**given, **more})  # type: ignore[arg-type]
    await scene.store.add_operation(operation)
    return operation


async def test_what_was_stored_is_read_as_it_was_by_its_tenant_alone(scene: Scene) -> None:
    made = await add(scene, 5)
    assert await scene.store.get_operation("acme", 5) == made
    assert await scene.store.get_operation("globex", 5) is None
    assert await scene.store.get_operation("acme", 6) is None
    assert (await scene.store.list_operations("globex", None, 10)).operations == ()


async def test_lists_go_by_pages_newest_first(scene: Scene) -> None:
    for number in (3, 1, 2):
        await add(scene, number)
    first = await scene.store.list_operations("acme", None, 2)
    assert ([one.id for one in first.operations], first.next_before_id) == ([3, 2], 2)
    rest = await scene.store.list_operations("acme", 2, 2)
    assert ([one.id for one in rest.operations], rest.next_before_id) == ([1], None)


async def test_whoever_moves_it_first_has_moved_it(scene: Scene) -> None:
    await add(scene, 5)
    [one] = await scene.store.unfinished_operations(0, 10)
    [other] = await scene.store.unfinished_operations(0, 10)
    now_at = await scene.store.now()
    assert await scene.store.move_operation(advanced(one, Step(mark=(4,), done=1), now_at))
    assert not await scene.store.move_operation(advanced(other, Step(mark=(3,), done=9), now_at))
    [found] = await scene.store.unfinished_operations(0, 10)
    assert (found.mark, found.done, found.revision) == ((4,), 1, 1)


async def test_one_that_is_over_is_not_carried_on(scene: Scene) -> None:
    await add(scene, 5)
    await add(scene, 6, tenant="globex")
    [one, _] = await scene.store.unfinished_operations(0, 10)
    assert await scene.store.move_operation(advanced(one, Step(mark=None), await scene.store.now()))
    assert [one.id for one in await scene.store.unfinished_operations(0, 10)] == [6]
    assert [one.id for one in await scene.store.unfinished_operations(6, 10)] == []
    with pytest.raises(Conflict, match="done already"):
        await scene.store.cancel_operation("acme", 5)


async def test_a_cancelled_one_cannot_be_moved_by_who_read_it_before(scene: Scene) -> None:
    await add(scene, 5)
    [seen] = await scene.store.unfinished_operations(0, 10)
    assert await scene.store.cancel_operation("globex", 5) is None
    ended = await scene.store.cancel_operation("acme", 5)
    assert ended is not None
    assert ended.state == "cancelled"
    assert ended.finished_at == await scene.store.now()
    again = await scene.store.cancel_operation("acme", 5)
    assert again is not None
    assert msgspec.structs.replace(again, revision=0) == msgspec.structs.replace(ended, revision=0)
    assert not await scene.store.move_operation(advanced(seen, Step(mark=(1,)), await scene.store.now()))


async def test_a_tenant_has_a_bounded_number_under_way(scene: Scene) -> None:
    for number in range(1, MAX_UNFINISHED + 1):
        await add(scene, number)
    with pytest.raises(Overloaded):
        await add(scene, 1_000)
    await add(scene, 1_001, tenant="globex")
    await scene.store.cancel_operation("acme", 1)
    await add(scene, 1_000)


async def test_asking_for_one_is_told(scene: Scene) -> None:
    heard: list[Hint] = []
    scene.store.subscribe(heard.append)
    await add(scene, 5)
    await scene.harness.settled()
    assert Hint.OPERATIONS in heard


async def test_old_ones_are_forgotten(scene: Scene) -> None:
    for number in (1, 2):
        await add(scene, number)
    await scene.store.cancel_operation("acme", 1)
    scene.pass_time(DAY_US // 1_000_000)
    now_at = await scene.store.now()
    await scene.store.purge(now_at - 1, now_at - 1, 100)
    found = await scene.store.list_operations("acme", None, 10)
    assert [one.id for one in found.operations] == [2]
