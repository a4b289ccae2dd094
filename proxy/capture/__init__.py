"""Capture files and live interfaces: from recorded packets to datagrams and segments."""
