"""memxd: long-term memory for AI agents, served from the user's own machine.

Importing this package is cheap: it pulls in nothing but the version. ``memxd.client`` is what an agent needs;
``memxd.daemon`` is the server. docs/ARCHITECTURE.md walks through the house.
"""

__version__ = "0.1.0"
