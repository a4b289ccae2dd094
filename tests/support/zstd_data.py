"""Compression with zstd, for captures that tests write."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def zstd_compressed(data: bytes, level: int = 3) -> bytes:
    """Return one zstd frame with a checksum."""
    parameter = zstd.CompressionParameter
    return zstd.compress(data, options={parameter.checksum_flag: 1, parameter.compression_level: level})
