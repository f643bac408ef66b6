"""The columns: rank and filter features of every row in flat arrays, and the views evaluated over them.

``Columns`` is the face; ``arrays`` holds the by-rid arrays, ``scopes`` the rows of each scope, ``tags`` the tag sets,
``visible`` the rules of a view, ``snapshot`` the file. Called by the engine (select, arrays) and the store's writer
(apply, count_bump).
"""

from memxd.index.columns.arrays import ColumnArrays
from memxd.index.columns.columns import Columns

__all__ = ["ColumnArrays", "Columns"]
