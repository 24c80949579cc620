"""The port's verbs about kept answers over an engine; none of them is written under a promise itself."""

from hourhand.core.repeating import Answer
from hourhand.ports.answers import Asked, Begun, Past
from hourhand.stores.relational import answers
from hourhand.stores.relational.tx import Engine


class AnswerVerbs:
    """See `ports.answers` for the contract of each."""

    _engine: Engine

    async def begin_answer(self, asked: Asked) -> Begun:
        return await self._engine.write(lambda tx: answers.begin_answer(tx, asked))

    async def fence_off(self, tenant: str, key: str, *, fence: int, since: int) -> Past:
        return await self._engine.write(lambda tx: answers.fence_off(tx, tenant, key, fence, since))

    async def finish_answer(self, tenant: str, key: str, fence: int, answer: Answer) -> bool:
        return await self._engine.write(lambda tx: answers.finish_answer(tx, tenant, key, fence, answer))

    async def abandon_answer(self, tenant: str, key: str, fence: int) -> None:
        await self._engine.write(lambda tx: answers.abandon_answer(tx, tenant, key, fence))
