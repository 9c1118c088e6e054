"""REPLACE hard positives: rewordings that stay true of the image, unlike the foil."""
