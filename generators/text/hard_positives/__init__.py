"""REPLACE hard positives: rewordings that stay true of the image, where the foil is false."""
