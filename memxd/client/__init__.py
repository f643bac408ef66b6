"""The Python client of memxd: ``Client`` (blocking) and ``AsyncClient`` (asyncio).

    from memxd.client import Client, where

    with Client(agent_id="planner", user_id="ada") as memory:
        memory.store("The wedding is on 12 June in Porto.", type="episodic", tags=["family"])
        for hit in memory.search("when is the wedding?", filter=where(tags_any=["family"])).hits:
            print(hit.relevance, hit.memory.content)

Owns what an agent needs and nothing of the daemon: it imports only the standard library, grpcio and protobuf. Answers
are the frozen dataclasses of ``memxd.model``; refusals are the classes of ``memxd.errors``. Instants in answers are
microseconds since the epoch (``as_datetime`` turns them); in arguments, aware datetimes work as well.
"""

from memxd.client.access import Tls, read_token
from memxd.client.admin import DaemonStatus
from memxd.client.aio import AsyncClient
from memxd.client.memories import UNSET, Item
from memxd.client.retry import NO_RETRY, Retry
from memxd.client.searches import Question, rank, where
from memxd.client.sync import Client
from memxd.client.values import as_datetime

__all__ = [
    "NO_RETRY",
    "UNSET",
    "AsyncClient",
    "Client",
    "DaemonStatus",
    "Item",
    "Question",
    "Retry",
    "Tls",
    "as_datetime",
    "rank",
    "read_token",
    "where",
]
