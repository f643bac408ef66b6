"""``python -m memxd.bench``."""

import sys

from memxd.bench.main import main
from memxd.config import process_environ

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], process_environ()))
