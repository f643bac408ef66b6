"""``python -m memxd.cli`` is ``memx``."""

from memxd.cli import memx

memx()
