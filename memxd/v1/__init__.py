"""Generated from proto/memxd/v1 by ``make proto``; never edited by hand."""
