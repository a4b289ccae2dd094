"""Flows: from datagrams and segments to streams of ordered bytes."""
