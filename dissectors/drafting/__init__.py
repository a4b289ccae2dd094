"""Inference of a protocol file from traffic: framing, format, messages, fields, identifiers and relations."""
