"""What the keyword index's files were made by and for, as one line that is compared.

Owns which versions make older files unreadable: the format, the analyzer, Whoosh. Files of another stamp are set aside
and built anew. Used by ``index``.
"""

from __future__ import annotations

import whoosh

from memxd.index.lexical.analyzer import ANALYZER_VERSION

_FORMAT = 2


def stamp(database_id: str = "") -> str:
    """What files were made by and for which database; files of another stamp are not read."""
    release = ".".join(str(part) for part in whoosh.__version__)
    made_by = f"format-{_FORMAT} analyzer-{ANALYZER_VERSION} whoosh-{release}"
    return f"{made_by} database-{database_id}" if database_id else made_by
