"""The keyword leg: text analysis, an inverted index on disk (Whoosh) with a tail in memory, and BM25.

``analyzer.query_terms`` turns a question into terms, ``index.LexicalIndex`` finds rows by them. Everything else is
internal. Derived and disposable: the folder can be deleted at any time and is built again from the store.
"""
