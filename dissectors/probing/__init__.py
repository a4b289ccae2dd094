"""Test cases for programs that speak a protocol: their actions, the routes to them, and verdicts."""
