"""Protobuf messages to the dataclasses of ``memxd.model`` and back, one module per resource.

Inward it is strict about what the engine's types cannot express: unknown enum numbers, timestamps out of range,
numbers that are not finite, values without a kind. Everything else is the engine's to validate, once. Outward it
fills messages in place and keeps answers below 3.5 MiB (``size.py``). Called by the servicers only.
"""
