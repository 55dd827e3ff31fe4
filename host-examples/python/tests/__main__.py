"""Runs all unit tests; the last line is `N passed, N failed`."""

import sys
import unittest
from pathlib import Path

suite = unittest.defaultTestLoader.discover(str(Path(__file__).parent), top_level_dir=".")
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
failed = len(result.failures) + len(result.errors)
for case, why in result.skipped:
    print(f"skipped {case}: {why}")
print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
sys.exit(1 if failed or not result.testsRun else 0)
