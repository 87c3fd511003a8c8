"""What was read: the number of rows and a checksum of data in blocks, as a part of certificates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataRecord:
    """The data that a certificate is about.

    Attributes
    ----------
    n_rows, n_blocks : int
        Rows and blocks that were read. A pass that misses a row raises an error.
    checksum : str
        CRC-32 of the checksums of all blocks, in hexadecimal digits. The same data in the same blocks have the same
        checksum.

    Examples
    --------
    >>> print(DataRecord(2_000_000, 80, "1a2b3c4d"))
    2,000,000 rows in 80 blocks, checksum 1a2b3c4d
    """

    n_rows: int
    n_blocks: int
    checksum: str

    def __str__(self) -> str:
        return f"{self.n_rows:,} rows in {self.n_blocks:,} blocks, checksum {self.checksum}"
