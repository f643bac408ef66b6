"""The gRPC face: the only place that knows both protobuf and the engine.

Owns the socket, the servicers, the conversions, the table from error class to wire code, and admission control. Holds
no rule about memories: those are the engine's. ``daemon.py`` builds it; nothing else imports it.
"""
