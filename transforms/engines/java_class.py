"""Changes one call in a compiled Java class, without a compiler.

Source: The Java Virtual Machine Specification, chapter 4, for the layout of a class file.
"""

import struct

from eqforge.core.errors import InputError

_UTF8, _CLASS, _METHOD, _NAME_AND_TYPE = 1, 7, 10, 12
# Bytes of a constant after its tag; a Utf8 has its length before its bytes.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4}
_COUNT_AT, _CONSTANTS_AT = 8, 10
_INVOKE_VIRTUAL, _INVOKE_STATIC = b"\xb6", b"\xb8"
_NOPS = bytes(3)

Method = tuple[str, str, str]


def pass_whole_object(
    content: bytes, getter: Method, called: Method, instead: tuple[str, str]
) -> bytes:
    """Replaces a call `Called.called(object.getter())` by `Called.instead(object)`.

    Args:
      content: a class file.
      getter: class, name and descriptor of the method that returns the number.
      called: class, name and descriptor of the static method that takes it.
      instead: name and descriptor of the static method of the same class that takes the object.

    Raises:
      InputError: the class does not have exactly one such call.
    """
    constants = _Constants(content)
    reference = constants.method(*called)
    call = (
        *(_INVOKE_VIRTUAL, struct.pack(">H", constants.method(*getter))),
        *(_INVOKE_STATIC, struct.pack(">H", reference)),
    )
    if content.count(b"".join(call)) != 1:
        raise InputError(f"not one call of {called[1]} with {getter[1]}, but another number")
    body = content[constants.end :].replace(b"".join(call), _NOPS + b"".join(call[2:]))
    head = bytearray(content[: constants.end])
    struct.pack_into(">H", head, _COUNT_AT, constants.count + 3)
    # A Method holds the index of its class, then that of its name and type.
    struct.pack_into(">H", head, constants.places[reference] + 3, constants.count + 2)
    added = b"".join(
        (
            *map(_utf8, instead),
            struct.pack(">BHH", _NAME_AND_TYPE, constants.count, constants.count + 1),
        )
    )
    return bytes(head) + added + body


def _utf8(text: str) -> bytes:
    return struct.pack(">BH", _UTF8, len(text)) + text.encode("ascii")


class _Constants:
    """The constant pool of a class file.

    Attributes:
      places: offset of each constant's tag, by its index.
      count: one more than the largest index.
      end: offset of the pool's end.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.places: dict[int, int] = {}
        (self.count,) = struct.unpack_from(">H", content, _COUNT_AT)
        place, index = _CONSTANTS_AT, 1
        while index < self.count:
            self.places[index] = place
            tag = content[place]
            size = 2 + self._number(place) if tag == _UTF8 else _SIZES[tag]
            place += 1 + size
            index += 2 if tag in (5, 6) else 1  # long and double count twice
        self.end = place

    def _number(self, place: int, which: int = 0) -> int:
        number: int = struct.unpack_from(">H", self._content, place + 1 + 2 * which)[0]
        return number

    def _value(self, index: int) -> object:
        """Returns a constant with its references resolved: text, or a tuple."""
        place = self.places[index]
        tag = self._content[place]
        if tag == _UTF8:
            return self._content[place + 3 : place + 3 + self._number(place)].decode()
        if tag == _CLASS:
            return self._value(self._number(place))
        return self._value(self._number(place)), self._value(self._number(place, 1))

    def method(self, owner: str, name: str, descriptor: str) -> int:
        """Returns the index of a method reference.

        Raises:
          InputError: the class calls no such method.
        """
        for index, place in self.places.items():
            if self._content[place] == _METHOD and self._value(index) == (
                owner,
                (name, descriptor),
            ):
                return index
        raise InputError(f"calls no {owner}.{name}")
