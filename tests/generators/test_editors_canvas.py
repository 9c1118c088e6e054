import numpy as np
import pytest

from eqforge.generators.editors.canvas import fit


def picture(height, width):
    y, x = np.mgrid[:height, :width]
    return np.stack([y * 255 / height, x * 255 / width, (x + y) % 256], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("size", [(64, 64), (50, 70), (37, 91), (480, 640), (10, 400), (1, 1)])
def test_a_canvas_fits_the_model_and_comes_back_in_the_original_s_size(size):
    canvas = fit(picture(*size), None, 64, 8)
    assert canvas.height % 8 == 0 == canvas.width % 8
    assert max(canvas.height, canvas.width) <= 128
    assert canvas.restore(canvas.image).shape == (*size, 3)


def test_the_area_is_the_resolution_s_and_the_shape_the_picture_s():
    canvas = fit(picture(480, 640), None, 512, 8)
    height, width = canvas.inner
    assert abs(height * width - 512**2) < 1000
    assert abs(width / height - 640 / 480) < 0.005


def test_a_picture_that_fits_keeps_every_byte():
    image = picture(64, 64)
    canvas = fit(image, None, 64, 8)
    assert np.array_equal(canvas.image, image)
    assert np.array_equal(canvas.restore(canvas.image), image)


def test_padding_repeats_the_border_and_is_cut_off_again():
    image = picture(60, 68)  # 60 x 68 is about 64 squared, and 60 no multiple of 8
    canvas = fit(image, None, 64, 8)
    assert canvas.inner == (60, 68)
    assert canvas.image.shape == (64, 72, 3)
    assert np.array_equal(canvas.image[60:, :68], np.repeat(image[59:], 4, axis=0))
    assert np.array_equal(canvas.restore(canvas.image), image)


def test_a_mask_covers_every_pixel_it_touches_and_no_padding():
    mask = np.zeros((600, 680), dtype=bool)
    mask[301, 333] = True
    canvas = fit(picture(600, 680), mask, 64, 8)
    assert canvas.mask is not None
    assert canvas.mask.sum() == 1
    assert canvas.mask[30, 33]
    full = fit(picture(600, 680), np.ones_like(mask), 64, 8)
    assert full.mask is not None
    assert full.mask[:60, :68].all()
    assert not full.mask[60:].any()
    assert not full.mask[:, 68:].any()
