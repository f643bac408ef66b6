"""Makes ``vector_world`` importable for the tests beside it (they are imported by path, not as a package)."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
