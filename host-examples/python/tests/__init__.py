"""Unit tests of the Python host; run with `python -m unittest`."""
