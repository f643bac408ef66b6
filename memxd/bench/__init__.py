"""The bench: how fast memxd is, measured beside its peers in the same run, against the budgets it promises.

``memx bench speed`` and ``python -m memxd.bench speed`` run it. One module per question (``keyword``, ``rerank``...),
listed in ``registry``; ``runner`` asks them one after another and ``report`` keeps what they answer. The peers are the
extra ``bench``: ``pip install 'memxd[bench]'``. Imports everything below it; nothing but the command line imports it.
"""
