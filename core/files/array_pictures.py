"""Pictures that are stored as arrays of pixels (`.npy`), as EqBen's frames of YouCook2 are."""

import io
from typing import Final

from eqforge.core.files.pictures import BadImage, TooManyPixels
from eqforge.core.late import Image
from eqforge.core.late import numpy as np

_CHANNELS: Final = 3


def png_of_array(data: bytes, max_pixels: int) -> bytes:
    """Returns the PNG of an array of pixels in the order blue, green, red.

    Args:
      data: the bytes of a `.npy` file, uint8 [height, width, 3]; no pickle is opened.
      max_pixels: arrays with more are not read.

    Raises:
      TooManyPixels: it has more.
      BadImage: it is no such array, or cut short.

    Source: github.com/Wangt-CN/EqBen, `example/eqben_eval_template.py`, process_img_npy.
    """
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): "read_array_header_1_0", (2, 0): "read_array_header_2_0"}[version]
        shape, _, kind = getattr(np.lib.format, read)(stream)
    except Exception as error:  # a damaged header can make its parser raise anything
        raise BadImage("no array that NumPy wrote") from error
    if kind != np.dtype("uint8") or len(shape) != _CHANNELS or shape[2] != _CHANNELS:
        raise BadImage(f"an array of {kind} {list(shape)}; expected uint8 [height, width, 3]")
    if shape[0] * shape[1] > max_pixels:
        raise TooManyPixels(shape[0] * shape[1])
    if 0 in shape or len(data) - stream.tell() != shape[0] * shape[1] * _CHANNELS:
        raise BadImage("an array without pixels, or cut short")
    pixels = np.load(io.BytesIO(data), allow_pickle=False)[:, :, ::-1]
    encoded = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(encoded, format="PNG")
    return encoded.getvalue()
