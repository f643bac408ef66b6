"""Everything about running memxd on a machine that is not running itself: service units, the config file, diagnosis.

Owns no rule of any layer. ``cli/`` calls it; the daemon never does.
"""
