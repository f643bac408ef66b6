"""The database's tables, as an ordered list of numbered migrations.

Owns what each step does; how steps are run is ``migrating.py``'s. A new database runs them all, an older one those it
lacks. Never edit a step that was released: append one, and add a database of the released schema to tests/compat
(tests/compat/make_released.py makes it), so that every released schema stays tested.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

#: What refers to what:
#:
#:   scopes --< memories --< chunks            a memory's vectors, float16, one row each
#:                       --< memory_tags       for filters; a memory's own list is memories.tags
#:                       --< memory_facts      for metadata filters: hash of key and value
#:                       --< history           earlier contents
#:                       --< links >-- memories
#:   requests --< request_rids                 answers kept for retries, and whose text they hold
#:   changes                                   one row per revision; what indexes replay
#:   meta                                      model id and the like
#:
#: Notes on the columns that are not obvious:
#: rid and vid are never reused (AUTOINCREMENT), because indexes know rows and vectors by them. own_state and
#: own_valid_until are what callers set; state, valid_until and superseded_by follow from them and the SUPERSEDES links
#: (supersession.py). Importance is kept as the bits of its IEEE 754 double: between 0 and 1 they sort like the number,
#: and they survive json_array(), which prints REAL with 15 digits only. Tags stand in the row as well as in
#: memory_tags, so that reading a row is one look-up. Content stands last: scans of the rest skip its overflow pages.
_V1 = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE scopes(
  scope_no INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id TEXT NOT NULL,
  user_id  TEXT NOT NULL,
  UNIQUE(agent_id, user_id)
) STRICT;

CREATE TABLE memories(
  rid               INTEGER PRIMARY KEY AUTOINCREMENT,
  scope_no          INTEGER NOT NULL REFERENCES scopes(scope_no),
  id                TEXT    NOT NULL,
  type              INTEGER NOT NULL CHECK(type BETWEEN 1 AND 5),
  state             INTEGER NOT NULL CHECK(state BETWEEN 1 AND 3),
  own_state         INTEGER NOT NULL CHECK(own_state IN (1, 3)),
  importance_bits   INTEGER NOT NULL CHECK(importance_bits BETWEEN 0 AND 4607182418800017408),
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL,
  event_at          INTEGER,
  began_at          INTEGER NOT NULL AS (coalesce(event_at, created_at)) VIRTUAL,
  valid_until       INTEGER,
  own_valid_until   INTEGER,
  superseded_by     TEXT    NOT NULL DEFAULT '',
  private           INTEGER NOT NULL CHECK(private IN (0, 1)),
  vector_pending    INTEGER NOT NULL CHECK(vector_pending IN (0, 1)),
  revision          INTEGER NOT NULL,
  access_count      INTEGER NOT NULL DEFAULT 0,
  last_accessed_at  INTEGER,
  retrieval_count   INTEGER NOT NULL DEFAULT 0,
  last_retrieved_at INTEGER,
  content_hash      INTEGER NOT NULL,
  fold_hash         INTEGER NOT NULL,
  source            TEXT    NOT NULL,
  tags              TEXT    NOT NULL,
  metadata          TEXT    NOT NULL,
  content           TEXT    NOT NULL,
  UNIQUE(scope_no, id)
) STRICT;
CREATE INDEX memories_created    ON memories(scope_no, created_at, id);
CREATE INDEX memories_began      ON memories(scope_no, began_at, id);
CREATE INDEX memories_importance ON memories(scope_no, importance_bits, id);
CREATE INDEX memories_state      ON memories(scope_no, state, valid_until);
CREATE INDEX memories_content    ON memories(scope_no, content_hash);
CREATE INDEX memories_pending    ON memories(rid) WHERE vector_pending = 1;

CREATE TABLE chunks(
  vid    INTEGER PRIMARY KEY AUTOINCREMENT,
  rid    INTEGER NOT NULL REFERENCES memories(rid) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  start  INTEGER NOT NULL,
  stop   INTEGER NOT NULL,
  vector BLOB    NOT NULL,
  UNIQUE(rid, number)
) STRICT;

CREATE TABLE memory_tags(
  scope_no INTEGER NOT NULL,
  tag      TEXT    NOT NULL,
  rid      INTEGER NOT NULL REFERENCES memories(rid) ON DELETE CASCADE,
  PRIMARY KEY(scope_no, tag, rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_tags_rid ON memory_tags(rid);

CREATE TABLE memory_facts(
  scope_no INTEGER NOT NULL,
  fact     INTEGER NOT NULL,
  rid      INTEGER NOT NULL REFERENCES memories(rid) ON DELETE CASCADE,
  PRIMARY KEY(scope_no, fact, rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_facts_rid ON memory_facts(rid);

CREATE TABLE history(
  rid         INTEGER NOT NULL REFERENCES memories(rid) ON DELETE CASCADE,
  revision    INTEGER NOT NULL,
  replaced_at INTEGER NOT NULL,
  attributes  TEXT    NOT NULL,
  content     TEXT    NOT NULL,
  UNIQUE(rid, revision)
) STRICT;

CREATE TABLE links(
  lid           INTEGER PRIMARY KEY AUTOINCREMENT,
  scope_no      INTEGER NOT NULL REFERENCES scopes(scope_no),
  id            TEXT    NOT NULL,
  source_rid    INTEGER NOT NULL REFERENCES memories(rid) ON DELETE CASCADE,
  target_rid    INTEGER NOT NULL REFERENCES memories(rid) ON DELETE CASCADE,
  type          INTEGER NOT NULL CHECK(type BETWEEN 1 AND 7),
  strength      REAL    NOT NULL CHECK(strength BETWEEN 0 AND 1),
  bidirectional INTEGER NOT NULL CHECK(bidirectional IN (0, 1)),
  created_at    INTEGER NOT NULL,
  metadata      TEXT    NOT NULL,
  CHECK(source_rid <> target_rid),
  CHECK(type <> 5 OR bidirectional = 0),
  UNIQUE(scope_no, id),
  UNIQUE(source_rid, type, target_rid)
) STRICT;
CREATE INDEX links_target ON links(target_rid, type, source_rid);
CREATE TRIGGER links_scope BEFORE INSERT ON links WHEN
  (SELECT scope_no FROM memories WHERE rid = new.source_rid) IS NOT new.scope_no
  OR (SELECT scope_no FROM memories WHERE rid = new.target_rid) IS NOT new.scope_no
BEGIN SELECT raise(ABORT, 'a link joins memories of one scope'); END;

CREATE TABLE requests(
  request_no INTEGER PRIMARY KEY,
  scope_no   INTEGER NOT NULL REFERENCES scopes(scope_no),
  rpc        TEXT    NOT NULL,
  request_id TEXT    NOT NULL,
  body_hash  BLOB    NOT NULL,
  answer     TEXT,
  created_at INTEGER NOT NULL,
  UNIQUE(scope_no, rpc, request_id)
) STRICT;
CREATE INDEX requests_created ON requests(created_at);
CREATE TABLE request_rids(
  rid        INTEGER NOT NULL,
  request_no INTEGER NOT NULL REFERENCES requests(request_no) ON DELETE CASCADE,
  PRIMARY KEY(rid, request_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX request_rids_request ON request_rids(request_no);

CREATE TABLE changes(
  revision  INTEGER PRIMARY KEY AUTOINCREMENT,
  rid       INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  parts     INTEGER NOT NULL,
  dead_vids TEXT
) STRICT;
"""

#: One step: a script of SQL without BEGIN, COMMIT or PRAGMA, or a function that is given the connection within the
#: transaction and must not end it. Foreign keys are not enforced meanwhile, so that tables can be made anew; they are
#: checked before the commit.
Migration: TypeAlias = "str | Callable[[sqlite3.Connection], None]"

#: Migration i (from 0) leads from version i to i + 1.
MIGRATIONS: tuple[Migration, ...] = (_V1,)


def sync_file(path: Path) -> None:
    """Have a file's (or directory's) content on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
