"""Many requests in flight at once, from one event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from helm_ext.clients.server import run
from helm_ext.errors import DeploymentError

if TYPE_CHECKING:
    from helm_ext.clients.asking import AsyncClient
    from helm_ext.running.asking import Asking


def ask_at_once(client: AsyncClient, places: list[int], asking: Asking, in_flight: int) -> None:
    """Ask for the answers to the requests at these places, in their order, so many at a time."""
    run(_ask(client, places, asking, in_flight))


async def _ask(client: AsyncClient, places: list[int], asking: Asking, in_flight: int) -> None:
    """Ask for the answers in their order, so many at a time."""
    waiting = iter(places)

    async def work() -> None:
        for place in waiting:
            if asking.is_stopped:
                return
            try:
                result = await client.send(asking.states[place].request, asking.progress.retrying)
            except DeploymentError as error:
                asking.stop(error)
            except Exception as error:  # noqa: BLE001 - as for other clients
                asking.failed(place, str(error) or type(error).__name__)
            else:
                asking.take(place, result)

    workers = [asyncio.ensure_future(work()) for _ in range(min(in_flight, len(places)))]
    try:
        while workers:
            done, pending = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            for worker in done:
                worker.result()
            workers = list(pending)
            if isinstance(asking.stopped_by, DeploymentError):
                break  # the others wait for what does not come
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
