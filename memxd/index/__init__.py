"""The derived indexes: vectors, postings and rank features. Every one can be deleted and comes back from the store.

Each opens in a directory of its own, takes ``model.Change`` in revision order from one applier, answers any number of
searchers, and keeps a watermark ("I reflect revision N") that becomes durable with ``flush``. Owns no truth, no SQL,
no ranking. Called by ``engine``; calls the kernels and ``durable`` only.
"""
