"""SHA-256 digests of files, read or written in pieces."""

import hashlib
import io
import os
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any


def digest_stream(stream: Any) -> tuple[int, str]:
    """Return the length of an open file and its SHA-256."""
    sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    stream.seek(0, os.SEEK_END)  # files in memory are digested without being read through
    return stream.tell(), sha256


class DigestingStream(io.RawIOBase):
    """A stream for writing that computes the SHA-256 of its bytes while they are written.

    Args:
      stream: receives the bytes; it is left open.
    """

    INLINE_BYTES = 64 << 10
    """Less than this is digested sooner than another thread is woken."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._size, self._sha256 = stream, 0, hashlib.sha256()
        self._thread = ThreadPoolExecutor(1)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write bytes; another thread digests them meanwhile, without a copy."""
        piece = memoryview(data)
        if piece.nbytes < self.INLINE_BYTES:
            self._sha256.update(piece)
            self._stream.write(piece)
        else:
            digested = self._thread.submit(self._sha256.update, piece)
            try:
                self._stream.write(piece)
            finally:
                digested.result()  # whoever called may use the memory again
        self._size += piece.nbytes
        return piece.nbytes

    def tell(self) -> int:
        return self._size

    def digest(self) -> tuple[int, str]:
        self._thread.shutdown()
        return self._size, self._sha256.hexdigest()
