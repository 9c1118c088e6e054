"""Parses what containers do not tell about H.264: where decoding can start."""

from collections.abc import Iterator

SLICE, IDR_SLICE = 1, 5


def is_idr(packet: bytes, record: bytes) -> bool:
    """Tells whether a packet is an IDR picture: nothing after it refers to what came before.

    Containers also mark other pictures as keyframes: those of an open GOP, whose successors carry
    commands about older pictures, and the start of a gradual refresh, which is incomplete.

    Args:
      packet: one picture's NAL units, each after its length or a start code.
      record: the stream's AVCDecoderConfigurationRecord, which begins with 1 and tells the size of
        the lengths; anything else means start codes.

    Source: ITU-T H.264, table 7-1 and annex B; ISO/IEC 14496-15, 5.3.3.1.
    """
    is_record = len(record) > 4 and record[0] == 1
    units = _by_length(packet, (record[4] & 3) + 1) if is_record else _by_start_code(packet)
    for kind in units:
        if SLICE <= kind <= IDR_SLICE:
            return kind == IDR_SLICE
    return False


def _by_length(packet: bytes, size: int) -> Iterator[int]:
    """Yields the types of units that follow their length."""
    at = 0
    while at + size < len(packet):
        yield packet[at + size] & 31
        at += size + int.from_bytes(packet[at : at + size], "big")


def _by_start_code(packet: bytes) -> Iterator[int]:
    """Yields the types of units that follow the bytes 0, 0, 1."""
    at = packet.find(b"\0\0\1")
    while 0 <= at < len(packet) - 3:
        yield packet[at + 3] & 31
        at = packet.find(b"\0\0\1", at + 3)
